import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { json as readJson } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import {
  authorization,
  blogToken,
  type Deployment,
  type StartedApi,
  startDeployment,
} from '../support/deployment.js';
import { patience } from '../support/patience.js';
import { unitMs } from './support/work.js';

/**
 * The longest wait of other clients, in units of processor time: what it takes here to parse a megabyte of numbers.
 * The slowest case takes 15 of them.
 */
const maxStall = 40;
/** The growth of memory that is allowed afterwards, in bytes. */
const maxKeptBytes = 20_000_000;

const folder = mkdtempSync(join(tmpdir(), 'quillgate-test-'));
const socketPath = join(folder, 'probe');
let deployment: Deployment;
let api: StartedApi;
beforeAll(async () => {
  deployment = await startDeployment({ workers: 0 });
  api = await deployment.startApi({
    NODE_OPTIONS: `--import ${resolve('test/support/loop-probe.mjs')}`,
    PROBE_SOCKET: socketPath,
  });
  const content = 'A sentence of a post, with **words** in it. '.repeat(50);
  for (let n = 0; n < 100; n++) await api.blog('/blogs', { method: 'POST', json: { content } });
}, 120_000);
afterAll(async () => {
  await deployment.stop();
  rmSync(folder, { recursive: true });
});

/** The API process's own numbers since the last call. */
async function probe(): Promise<{ stallMs: number; bytes: number }> {
  const asked = request({ socketPath }).end();
  const [answer] = await once(asked, 'response');
  return (await readJson(answer)) as { stallMs: number; bytes: number };
}

const openFiles = () => readdirSync(`/proc/${api.child.pid}/fd`).length;

/** Sends the bytes on a connection of their own and reads until the API ends it; the status of the first answer. */
async function send(bytes: Uint8Array | string): Promise<number> {
  const socket = connect(api.child.port, '127.0.0.1').on('error', () => undefined);
  socket.write(bytes);
  const said: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => said.push(chunk));
  // Not `once` of events, which rejects when the connection is reset.
  await new Promise((done) => socket.once('close', done));
  return Number(Buffer.concat(said).toString('latin1', 9, 12));
}

/**
 * The least of the longest stalls of three times, what the code itself takes without what a first time costs, as a
 * multiple of the unit.
 */
async function stallOf(attack: () => Promise<unknown>): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 3 && least > maxStall; round++) {
    await probe();
    await attack();
    least = Math.min(least, (await probe()).stallMs / unit);
  }
  return least;
}

interface Target {
  method: string;
  path: string;
  headers: string[];
}
const chat = {
  method: 'POST',
  path: '/chat',
  headers: [`Authorization: ${authorization}`, 'X-LLM: openai'],
};
const blog = (method: string, ...headers: string[]): Target => ({
  method,
  path: method === 'POST' ? '/blogs' : '/blogs/01890000-0000-7000-8000-000000000001',
  headers: [`Authorization: Bearer ${blogToken}`, ...headers],
});
const targets: [string, Target][] = [
  ['POST /chat', chat],
  ['POST /blogs', blog('POST')],
  ['POST /blogs, strictly', blog('POST', 'Prefer: handling=strict')],
  ['PUT /blogs/{id}', blog('PUT')],
  ['PATCH /blogs/{id}', blog('PATCH')],
];

const megabyte = 1_040_000;
const filled = (part: string) =>
  Array(Math.floor(megabyte / (part.length + 1)))
    .fill(part)
    .join();
const numbered = (count: number, part: (n: string) => string) =>
  Array.from({ length: count }, (_, n) => part(n.toString(36))).join();
const nested = (open: string, close: string, depth: number) => open.repeat(depth) + close.repeat(depth);
const bodies: [string, string][] = [
  ['numbers', `{"messages":[${filled('0')}],"tags":[]}`],
  ['tags that are numbers', `{"content":"x","tags":[${filled('0')}]}`],
  ['tags that are texts', `{"content":"x","tags":[${filled('""')}]}`],
  ['empty objects', `{"content":"x","messages":[${filled('{}')}]}`],
  [
    '999 messages with all that is wrong',
    `{"messages":[${Array(999).fill('{"role":[],"content":{}}').join()}]}`,
  ],
  ['95,000 keys', `{"content":"x","messages":[{"content":"x"}],${numbered(85_000, (n) => `"k${n}":0`)}}`],
  ['long keys', `{${numbered(1000, (n) => `"${n.padStart(1000, '😀')}":0`)}}`.slice(0, megabyte)],
  ['objects of 80,000 shapes', `[${numbered(80_000, (n) => `{"${n}":0}`)}]`],
  ['half a million levels', nested('[', ']', megabyte / 2)],
  ['levels that are never closed', '['.repeat(megabyte)],
  ['31 levels, wide', `{"x":[${filled(nested('[', ']', 31))}]}`],
  ['objects in objects', `{"x":[${filled(`${'{"a":'.repeat(30)}0${'}'.repeat(30)}`)}]}`],
  ['blank content', `{"content":"${' '.repeat(megabyte)}","messages":[{"content":"${''}"}]}`],
  ['a blank message', `{"messages":[{"content":"${'\u200b'.repeat(megabyte / 3)}"}]}`],
  ['escapes', `{"content":"${'\\ud83d\\ude00'.repeat(megabyte / 12)}"}`],
  ['a lone surrogate at the end', `{"messages":[{"content":"${'x'.repeat(megabyte)}\\ud800"}]}`],
];

const unit = unitMs();

function withBody({ method, path, headers }: Target, body: Uint8Array, ...more: string[]): Buffer {
  const head = [
    `${method} ${path} HTTP/1.1`,
    'Host: x',
    'Connection: close',
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
    ...headers,
    ...more,
  ];
  return Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), body]);
}

const publicPaths = [
  '/livez',
  '/readyz',
  '/metrics',
  '/openapi.json',
  '/docs',
  '/docs/swagger-ui-bundle.js',
  '/docs/swagger-ui.css',
  '/blogs?limit=100',
  '/blogs?q=words',
  '/feed.json',
  '/feed.xml',
  '/blogs/01890000-0000-7000-8000-000000000001',
  '/chat/01890000-0000-7000-8000-000000000001',
  '/nothing',
];
const pipelined = (path: string, count: number) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(count);

describe('hostile input', () => {
  it.each(bodies)('has %s → it holds up nobody', async (_, body) => {
    const bytes = Buffer.from(body);
    for (const [name, target] of targets)
      expect(await stallOf(() => send(withBody(target, bytes))), name).toBeLessThan(maxStall);
    const zipped = withBody(chat, gzipSync(bytes), 'Content-Encoding: gzip');
    expect(await stallOf(() => send(zipped)), 'in gzip').toBeLessThan(maxStall);
  });

  it.each(publicPaths)(
    'is a megabyte of GET %s → it holds up nobody, refuses nobody for long and keeps nothing',
    async (path) => {
      await probe();
      const before = { files: openFiles(), ...(await probe()) };
      const all = pipelined(path, Math.floor(megabyte / (path.length + 30)));
      const attack = async () => {
        // On a slow machine a reader may be told to come back in a moment.
        const readable = () =>
          expect.poll(async () => (await api.blog('/blogs?limit=1')).status, patience).toBe(200);
        const reader = readable();
        await send(all);
        // As many as one connection may have, from many, none of which reads its answers.
        const sockets = Array.from({ length: 20 }, () =>
          connect(api.child.port, '127.0.0.1').on('error', () => undefined),
        );
        for (const socket of sockets) socket.write(pipelined(path, 32));
        await reader;
        await readable();
        for (const socket of sockets) socket.destroy();
      };
      expect(await stallOf(attack)).toBeLessThan(maxStall);
      await vi.waitFor(
        async () => {
          expect(openFiles()).toBeLessThan(before.files + 10);
          expect((await probe()).bytes).toBeLessThan(before.bytes + maxKeptBytes);
        },
        { ...patience, interval: 200 },
      );
    },
  );
});
