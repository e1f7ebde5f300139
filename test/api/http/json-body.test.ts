import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { afterAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { jsonBody } from '../../../api/http/json-body.js';
import { LargeWork } from '../../../api/http/large-work.js';
import { Failure } from '../../../shared/failures.js';
import { serveRoutes } from '../../support/app.js';
import { createClient } from '../../support/client.js';
import { patience, patienceMs } from '../../support/patience.js';
import { createRecordingLog } from '../../support/recording-log.js';

const maxBytes = 1_048_576;
const logged = createRecordingLog();
let read: unknown;
let listeners: number;
const largeWork = new LargeWork();
afterAll(() => largeWork.thread.end());
/** The bytes that a body took, one number after the other. */
let held: number[];
/** Refuses the body that is held. */
let refusal: AbortController;
const holdBytes = () => ({
  resize: (bytes: number) => void held.push(bytes),
  release: () => {},
  refusal: refusal.signal,
});
const common = { maxBytes, maxDepth: 32, maxValues: 100_000 };
const doors = {
  '/': jsonBody(common),
  '/large': jsonBody({ ...common, maxBytes: 8 * maxBytes, largeWork }),
  '/held': jsonBody({ ...common, maxValues: 9, holdBytes }),
};
const server = await serveRoutes((app) => {
  for (const [path, door] of Object.entries(doors))
    app.post(path, door, (request, response) => {
      read = request.body;
      listeners = request.listenerCount('data') + request.listenerCount('end');
      response.sendStatus(204);
    });
}, logged.log);
afterAll(server.close);
const ask = createClient(server.url);
beforeEach(() => {
  read = undefined;
  held = [];
  refusal = new AbortController();
});

const json = { 'Content-Type': 'application/json' };

/** `read`, or the code of the problem. */
async function send(
  body: string | Uint8Array,
  headers: Record<string, string> = json,
  path = '/',
): Promise<string> {
  // As bytes, so that fetch adds no Content-Type of its own.
  const answer = await ask({ method: 'POST', path, headers, body: Buffer.from(body) });
  return answer.status === 204 ? 'read' : answer.body.code;
}

const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`;
/** A JSON text of so many bytes. */
const sized = (bytes: number) => `"${'a'.repeat(bytes - 2)}"`;

describe('a body that', () => {
  it.each([
    ['plain', json, sized(100_000)],
    ['encoded', { ...json, 'Content-Encoding': 'gzip' }, gzipSync(sized(100_000))],
  ])('has been read, %s -> nothing of it is kept', async (_, headers, body) => {
    expect(await send(body, headers, '/large')).toBe('read');
    expect(listeners).toBe(0);
  });

  const charsets = ['utf-16', '"utf-16"', 'latin1', '""', 'utf-8, text/plain'];
  it.each<[type: string, code: string]>([
    ...[
      ...['application/json', 'Application/JSON', 'application/json;', 'application/json; ;charset=utf-8;'],
      ...['application/json; charset=utf-8', 'application/json;charset="UTF-8"', 'application/json; utf-8'],
      ...['application/json ; charset = utf-8 ', 'application/json; version=1'],
      'application/json; odata.metadata=minimal; charset=utf-8',
      'application/json; a="charset=utf-16; \\"b\\""; charset=UTF8',
    ].map((type): [string, string] => [type, 'read']),
    ...[
      ...['text/plain', 'application/jsonp', 'application/json+x', '*/*', '', ';'],
      ...['application/json, text/plain', 'text/plain; type="application/json"'],
      ...charsets.map((charset) => `application/json; version=1; Charset=${charset}`),
    ].map((type): [string, string] => [type, 'unsupported_media_type']),
  ])('is sent as %j -> %s', async (type, code) => {
    expect(await send('{"a":["ä🎉"]}', { 'Content-Type': type })).toBe(code);
    expect(read).toEqual(code === 'read' ? { a: ['ä🎉'] } : undefined);
  });

  it('is missing -> malformed', async () => {
    const socket = connect(server.port, '127.0.0.1');
    socket.end('POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n');
    expect(Buffer.concat(await socket.toArray()).toString()).toContain('"code":"invalid_json"');
  });

  const objects = (depth: number) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;
  const list = (length: number, item: string) => `[${Array(length).fill(item).join()}]`;
  const bodies: [what: string, body: string | Uint8Array, code: string][] = [
    ['empty', '', 'invalid_json'],
    ['blank', ' \n', 'invalid_json'],
    ['a byte order mark and more', '\uFEFF{}', 'invalid_json'],
    ['UTF-16', Buffer.from('{"a":"b"}', 'utf16le'), 'invalid_json'],
    ['a byte that is not UTF-8', Buffer.from([0x22, 0xff, 0x22]), 'invalid_json'],
    ['an overlong encoding', Buffer.from([0x22, 0xc0, 0xaf, 0x22]), 'invalid_json'],
    ['a surrogate in UTF-8', Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]), 'invalid_json'],
    ['a cut character', Buffer.from([0x22, 0xc3]), 'invalid_json'],
    ['a raw control character', '"\u0001"', 'invalid_json'],
    ['cut', '{"a":', 'invalid_json'],
    ['a lone high surrogate', '"\\ud800"', 'invalid_request'],
    ['a lone low surrogate', '"a\\udc00b"', 'invalid_request'],
    ['a lone surrogate deep in it', '{"a":[{"b":"\\ud83d"}]}', 'invalid_request'],
    ['a lone surrogate in a key', '{"a":{"\\ud800":1}}', 'invalid_request'],
    ['two surrogates the wrong way round', '"\\udf89\\ud83c"', 'invalid_request'],
    ['a pair of surrogates', '"\\ud83c\\udf89"', 'read'],
    ['32 arrays in each other', nested(32), 'read'],
    ['33 arrays in each other', nested(33), 'invalid_request'],
    ['32 objects in each other', objects(32), 'read'],
    ['33 objects in each other', objects(33), 'invalid_request'],
    ['33 levels behind 32', `[${nested(31)},${nested(32)}]`, 'invalid_request'],
    ['500,000 levels', nested(500_000), 'invalid_request'],
    ['500,000 levels that do not end', '['.repeat(500_000), 'invalid_request'],
    ['100,001 numbers', list(100_001, '0'), 'invalid_request'],
    ['100,001 arrays', list(100_001, '[]'), 'invalid_request'],
    ['100,001 numbers in arrays', list(10, list(10_000, '0')), 'invalid_request'],
    [
      '100,001 members',
      `{${Array.from({ length: 100_001 }, (_, n) => `"${n}":0`).join()}}`,
      'invalid_request',
    ],
  ];
  it.each(bodies.map(([what, body, code]) => ({ what, body, code })))(
    'is $what -> $code, and nothing is logged',
    async ({ body, code }) => {
      expect(await send(body, json, '/large')).toBe(code);
      expect(read === undefined).toBe(code !== 'read');
      expect(logged.lines).toEqual([]);
    },
  );

  it('has 100,000 keys, or texts like many values -> is read as it is', async () => {
    const text = '[{,"\\}]'.repeat(20_000);
    for (const body of [
      Object.fromEntries(Array.from({ length: 99_990 }, (_, n) => [`key${n}`, n])),
      [text, { [text]: 1 }, '🎉'],
    ]) {
      expect(await send(JSON.stringify(body), json, '/large')).toBe('read');
      expect(read).toEqual(body);
    }
  });

  it('is as long as it may be, or a byte longer -> read, or refused, announced and chunked', async () => {
    expect(await send(sized(maxBytes))).toBe('read');
    expect(await send(sized(maxBytes + 1))).toBe('payload_too_large');
    expect(await sendChunked(sized(maxBytes))).toBe(204);
    expect(await sendChunked(sized(maxBytes + 1))).toBe(413);
  });

  // body-parser first reads all that was announced, so a sender can keep the server reading for as long as it likes.
  it('is announced as too large -> refused before it arrives', async () => {
    const socket = connect(server.port, '127.0.0.1');
    const head = `POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${maxBytes + 1}\r\n\r\n`;
    socket.write(head);
    try {
      const [answer] = await once(socket, 'data', { signal: AbortSignal.timeout(patienceMs) });
      expect(String(answer)).toMatch(/^HTTP\/1\.1 413 /);
    } finally {
      socket.destroy();
    }
  });
});

describe('a compressed body', () => {
  const encoded = (encoding: string) => ({ ...json, 'Content-Encoding': encoding });

  const bodies: [encoding: string, body: Uint8Array, code: string][] = [
    ['gzip', gzipSync('{"a":1}'), 'read'],
    ['GZIP', gzipSync('{"a":1}'), 'read'],
    ['deflate', deflateSync('{"a":1}'), 'read'],
    ['br', brotliCompressSync('{"a":1}'), 'read'],
    ['zstd', zstdCompressSync('{"a":1}'), 'read'],
    ...['rot13', 'gzip, gzip', 'x-canary'].map((encoding): [string, Uint8Array, string] => [
      encoding,
      Buffer.from('{}'),
      'unsupported_media_type',
    ]),
    // zlib's errors reach the problem handler without the `type` it knows body-parser's errors by.
    ['gzip', gzipSync('{"a":1}').subarray(0, 20), 'invalid_json'],
    ['gzip', Buffer.from('{"a":1}'), 'invalid_json'],
    ['gzip', Buffer.alloc(1), 'invalid_json'],
  ];
  it.each(bodies.map(([encoding, body, code]) => ({ encoding, body, code })))(
    'is sent with $encoding -> $code',
    async ({ encoding, body, code }) => {
      expect(await send(body, encoded(encoding))).toBe(code);
      expect(read).toEqual(code === 'read' ? { a: 1 } : undefined);
    },
  );

  it('is larger than it may be when it is decompressed -> refused', async () => {
    expect(await send(gzipSync(sized(maxBytes)), encoded('gzip'))).toBe('read');
    for (const body of [sized(maxBytes + 1), Buffer.alloc(20 * maxBytes)])
      expect(await send(gzipSync(body), encoded('gzip'))).toBe('payload_too_large');
  });
});

/** Begins a request, whose body has so many bytes more than are sent here. */
function begin(path: string, { head = '', sent, more }: { head?: string; sent: Uint8Array; more: number }) {
  const socket = connect(server.port, '127.0.0.1');
  const length = `Content-Length: ${sent.length + more}\r\n`;
  socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${length}${head}\r\n`);
  socket.write(sent);
  return socket;
}
const answerOf = async (socket: Socket) =>
  String((await once(socket, 'data', { signal: AbortSignal.timeout(patienceMs) }))[0]);

describe('a body of', () => {
  it.each<[string, number, { turns: number; threads: number }, boolean]>([
    ['a megabyte', maxBytes, { turns: 0, threads: 0 }, false],
    ['more', maxBytes + 1, { turns: 1, threads: 1 }, false],
    ['a megabyte, compressed', maxBytes, { turns: 1, threads: 0 }, true],
    ['more, compressed', maxBytes + 1, { turns: 1, threads: 1 }, true],
  ])(
    '%s -> it is read in the thread and waits for its turn, or neither',
    async (_, size, expected, isGzip) => {
      const turns = vi.spyOn(largeWork, 'run');
      const threads = vi.spyOn(largeWork.thread, 'read');
      const [body, headers] = isGzip
        ? [gzipSync(sized(size)), { ...json, 'Content-Encoding': 'gzip' }]
        : [sized(size), json];
      expect(await send(body, headers, '/large')).toBe('read');
      expect(read).toBe('a'.repeat(size - 2));
      expect({ turns: turns.mock.calls.length, threads: threads.mock.calls.length }).toEqual(expected);
      vi.restoreAllMocks();
    },
  );

  it.each([
    ['malformed', `${sized(maxBytes)}]`, 'invalid_json'],
    ['of a lone surrogate', `["${'a'.repeat(maxBytes)}\\ud800"]`, 'invalid_request'],
    ['of too many values', `[${'1,'.repeat(maxBytes)}1]`, 'invalid_request'],
  ])('more than a megabyte, %s -> refused as a smaller one is', async (_, body, code) => {
    expect(await send(body, json, '/large')).toBe(code);
  });
});

describe('a compressed body of a thousand bytes that is a megabyte', () => {
  const text = sized(maxBytes);
  const half = (whole: Uint8Array) => Math.floor(whole.length / 2);
  const gzip = gzipSync(text);
  const members = Buffer.concat([gzipSync(text.slice(0, 1000)), gzipSync(text.slice(1000))]);

  it.each<[string, string, Uint8Array, number]>([
    ['gzip, without its last bytes', 'gzip', gzip, gzip.length - 8],
    ['half a gzip', 'gzip', gzip, half(gzip)],
    ['the head of a gzip', 'gzip', gzip, 10],
    ['gzip of two members, without its last bytes', 'gzip', members, members.length - 8],
    ['deflate', 'deflate', deflateSync(text), deflateSync(text).length - 4],
    ['brotli', 'br', brotliCompressSync(text), brotliCompressSync(text).length - 1],
    ['zstd', 'zstd', zstdCompressSync(text), zstdCompressSync(text).length - 1],
  ])(
    'has not arrived, %s -> it takes what was sent of it, and then counts before it takes room',
    async (_, encoding, whole, cut) => {
      const head = `Content-Encoding: ${encoding}\r\n`;
      const socket = begin('/held', { head, sent: whole.subarray(0, cut), more: whole.length - cut });
      await vi.waitFor(() => expect(held.at(-1)).toBe(cut), patience);
      socket.write(whole.subarray(cut));
      expect(await answerOf(socket)).toMatch(/^HTTP\/1\.1 204 /);
      const arrived = held.indexOf(whole.length);
      expect(held.slice(0, arrived).every((bytes) => bytes <= whole.length)).toBe(true);
      const steps = held.slice(arrived, -1).map((bytes, n) => (held[arrived + n + 1] ?? 0) - bytes);
      expect(Math.max(...steps)).toBeLessThan(maxBytes / 4);
      expect(held.at(-1)).toBe(maxBytes);
      socket.destroy();
    },
  );
});

it('a body that is refused while it arrives -> the failure is its answer', async () => {
  const socket = begin('/held', { sent: Buffer.from('{"a":'), more: 2 });
  await vi.waitFor(() => expect(held).toEqual([5]), patience);
  refusal.abort(new Failure('overloaded'));
  expect(await answerOf(socket)).toMatch(/^HTTP\/1\.1 500 .*"code":"overloaded"/s);
  socket.destroy();
});

it('a body that comes byte by byte, and another one on the same connection -> both are read', async () => {
  const socket = connect(server.port, '127.0.0.1');
  const head = 'POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n';
  const chunks = Array.from('{"a":"0123456789"}', (byte) => `1\r\n${byte}\r\n`).join('');
  // Bytes after the end of the encoded text are read, and ignored.
  const zipped = Buffer.concat([gzipSync('{"b":1}'), Buffer.alloc(40_000)]);
  socket.write(`${head}Transfer-Encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`);
  await once(socket, 'data', { signal: AbortSignal.timeout(patienceMs) });
  expect(read).toEqual({ a: '0123456789' });
  socket.write(`${head}Content-Encoding: gzip\r\nContent-Length: ${zipped.length}\r\n\r\n`);
  socket.write(zipped);
  await once(socket, 'data', { signal: AbortSignal.timeout(patienceMs) });
  socket.end(`${head}Connection: close\r\nContent-Length: 2\r\n\r\n{}`);
  expect(Buffer.concat(await socket.toArray()).toString()).toMatch(/^HTTP\/1\.1 204 /);
  expect(read).toEqual({});
});

async function sendChunked(body: string): Promise<number> {
  const bytes = Buffer.from(body);
  const stream = new ReadableStream({
    start: (controller) => {
      controller.enqueue(bytes.subarray(0, 1000));
      controller.enqueue(bytes.subarray(1000));
      controller.close();
    },
  });
  const response = await fetch(server.url, { method: 'POST', headers: json, body: stream, duplex: 'half' });
  await response.arrayBuffer();
  return response.status;
}
