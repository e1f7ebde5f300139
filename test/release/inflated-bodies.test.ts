import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { authorization, type Deployment, type StartedApi, startDeployment } from '../support/deployment.js';

const connections = 400;
const maxUserBytes = 67_108_864;
const megabyte = Buffer.alloc(1_048_576, 'x');
/** Text that does not repeat itself, so that it is as long compressed. */
const dense = Buffer.from(Array.from({ length: 20_000 }, (_, n) => (n * n).toString(36)).join());

let deployment: Deployment;
let api: StartedApi;
beforeAll(async () => {
  deployment = await startDeployment({ workers: 0 });
  api = await deployment.startApi({ CHAT_USER_MAX_QUEUED_BYTES: String(maxUserBytes) });
});
afterAll(() => deployment.stop());

/** The most memory that the API process has had since it was last asked, in bytes. */
function peakBytes(): number {
  const peak = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${api.child.pid}/status`, 'utf8'))?.[1];
  writeFileSync(`/proc/${api.child.pid}/clear_refs`, '5');
  return 1024 * Number(peak);
}

function begin(encoding: string, body: Buffer): Socket {
  const head = [
    ...['POST /chat HTTP/1.1', 'Host: x', 'Content-Type: application/json', 'X-LLM: openai'],
    ...[`Authorization: ${authorization}`, `Content-Encoding: ${encoding}`, 'Connection: close'],
    `Content-Length: ${body.length + 8}`,
  ];
  const socket = connect(api.child.port, '127.0.0.1').on('error', () => undefined);
  socket.write(Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), body]));
  return socket;
}

const statusOf = async (socket: Socket) => String((await once(socket, 'data'))[0]).slice(9, 12);

describe('a thousand compressed bytes that would be a megabyte, on 400 connections of one user', () => {
  const gzip = gzipSync(megabyte);
  const parameters = { [constants.BROTLI_PARAM_QUALITY]: 5 };
  it.each<[string, string, Buffer]>([
    ['a gzip without its last 8 bytes', 'gzip', gzip.subarray(0, -8)],
    ['half a gzip', 'gzip', gzip.subarray(0, gzip.length / 2)],
    ['the head of a gzip', 'gzip', gzip.subarray(0, 10)],
    ['two gzips, the second without its end', 'gzip', Buffer.concat([gzip, gzip.subarray(0, -8)])],
    ['a deflate', 'deflate', deflateSync(megabyte).subarray(0, -4)],
    ['a brotli', 'br', brotliCompressSync(megabyte, { params: parameters }).subarray(0, -1)],
    ['a zstd', 'zstd', zstdCompressSync(megabyte).subarray(0, -1)],
    ['a gzip of a text that hardly shrinks', 'gzip', gzipSync(dense).subarray(0, -8)],
  ])(
    'is %s -> the process grows by no more than the bytes of a user and a fifth',
    async (_, encoding, body) => {
      // What a first body takes is there by then.
      const first = begin(encoding, body);
      first.write(Buffer.alloc(8));
      await statusOf(first);
      peakBytes();
      const before = peakBytes();
      const sockets = Array.from({ length: connections }, () => begin(encoding, body));
      await Promise.all(sockets.map((socket) => once(socket, 'connect')));
      // The others have arrived, too, once those that came later are answered.
      for (let n = 0; n < 20; n += 1) {
        const later = begin(encoding, body);
        later.write(Buffer.alloc(8));
        expect(['400', '413', '429']).toContain(await statusOf(later));
      }
      expect(peakBytes() - before).toBeLessThan(1.2 * maxUserBytes);
      for (const socket of sockets) socket.destroy();
      expect((await deployment.blog('/blogs', { method: 'GET' })).status).toBe(200);
    },
  );
});
