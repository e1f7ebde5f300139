import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterAll, describe, expect, it } from 'vitest';
import { authorization, startDeployment } from '../support/deployment.js';

const connections = 400;
const maxUserBytes = 67_108_864;
/** Text that does not repeat itself, so that it is as long compressed. */
const dense = Buffer.from(Array.from({ length: 20_000 }, (_, n) => (n * n).toString(36)).join());

const deployment = await startDeployment({ workers: 0 });
afterAll(deployment.stop);
const api = await deployment.startApi({ CHAT_USER_MAX_QUEUED_BYTES: String(maxUserBytes) });

/** The most memory that the API process has had since it was last asked, in bytes. */
function peakBytes(): number {
  const peak = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${api.child.pid}/status`, 'utf8'))?.[1];
  writeFileSync(`/proc/${api.child.pid}/clear_refs`, '5');
  return 1024 * Number(peak);
}

function begin(body: Buffer): Socket {
  const head = [
    ...['POST /chat HTTP/1.1', 'Host: x', 'Content-Type: application/json', 'X-LLM: openai'],
    ...[`Authorization: ${authorization}`, 'Content-Encoding: gzip', 'Connection: close'],
    `Content-Length: ${body.length + 8}`,
  ];
  const socket = connect(api.child.port, '127.0.0.1').on('error', () => undefined);
  socket.write(Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), body]));
  return socket;
}

const statusOf = async (socket: Socket) => String((await once(socket, 'data'))[0]).slice(9, 12);

describe('a gzip without its end, on 400 connections of one user', () => {
  it.each<[string, Buffer]>([
    ['of a thousand bytes that would be a megabyte', gzipSync(Buffer.alloc(1_048_576, 'x')).subarray(0, -8)],
    ['of a text that hardly shrinks', gzipSync(dense).subarray(0, -8)],
  ])('is %s -> the process grows by no more than the bytes of a user and a fifth', async (_, body) => {
    // What a first body takes is there by then.
    const first = begin(body);
    first.write(Buffer.alloc(8));
    await statusOf(first);
    peakBytes();
    const before = peakBytes();
    const sockets = Array.from({ length: connections }, () => begin(body));
    await Promise.all(sockets.map((socket) => once(socket, 'connect')));
    // The others have arrived, too, once those that came later are answered.
    for (let n = 0; n < 20; n += 1) {
      const later = begin(body);
      later.write(Buffer.alloc(8));
      expect(['400', '413', '429']).toContain(await statusOf(later));
    }
    expect(peakBytes() - before).toBeLessThan(1.2 * maxUserBytes);
    for (const socket of sockets) socket.destroy();
    expect((await deployment.blog('/blogs', { method: 'GET' })).status).toBe(200);
  });
});
