import { once } from 'node:events';
import { connect } from 'node:net';
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import express from 'express';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { jsonBody } from '../../../api/http/json-body.js';
import { problemHandler } from '../../../api/http/problem.js';
import { patienceMs } from '../../support/patience.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { serve } from '../../support/serve.js';

const maxBytes = 1_048_576;
const logged = createRecordingLog();
let read: unknown;
let listeners: number;
const app = express();
app.post('/', jsonBody({ maxBytes, maxDepth: 32, maxValues: 100_000 }), (request, response) => {
  read = request.body;
  response.sendStatus(204);
});
app.post(
  '/large',
  jsonBody({ maxBytes: 8 * maxBytes, maxDepth: 32, maxValues: 100_000 }),
  (request, response) => {
    read = request.body;
    listeners = request.listenerCount('data') + request.listenerCount('end');
    response.sendStatus(204);
  },
);
app.use(problemHandler(logged.log));
const server = await serve(app);
afterAll(() => server.close());
beforeEach(() => {
  read = undefined;
});

const json = { 'Content-Type': 'application/json' };

/** `read`, or the code of the problem. */
async function send(
  body: string | Uint8Array,
  headers: Record<string, string> = json,
  path = '/',
): Promise<string> {
  // As bytes, so that fetch adds no Content-Type of its own.
  const response = await fetch(server.url + path, { method: 'POST', headers, body: Buffer.from(body) });
  if (response.status === 204) return 'read';
  return ((await response.json()) as { code: string }).code;
}

const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`;
/** A JSON text of so many bytes. */
const sized = (bytes: number) => `"${'a'.repeat(bytes - 2)}"`;

describe('jsonBody', () => {
  it.each([
    ['plain', json, sized(100_000)],
    ['encoded', { ...json, 'Content-Encoding': 'gzip' }, gzipSync(sized(100_000))],
  ])('keeps nothing of a body that it has read, %s', async (_, headers, body) => {
    expect(await send(body, headers, '/large')).toBe('read');
    expect(listeners).toBe(0);
  });

  it.each([
    'application/json',
    'Application/JSON',
    'application/json; charset=utf-8',
    'application/json;charset="UTF-8"',
    'application/json ; charset = utf-8 ',
  ])('reads what is sent as %s', async (contentType) => {
    expect(await send('{"a":["ä🎉"]}', { 'Content-Type': contentType })).toBe('read');
    expect(read).toEqual({ a: ['ä🎉'] });
  });

  it.each(['text/plain', 'application/jsonp', 'application/json; charset=utf-16', '*/*', ''])(
    'refuses what is sent as %j',
    async (contentType) => {
      expect(await send('{}', { 'Content-Type': contentType })).toBe('unsupported_media_type');
    },
  );

  it('refuses a request without a body as malformed', async () => {
    const socket = connect(server.port, '127.0.0.1');
    socket.end('POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n');
    expect(Buffer.concat(await socket.toArray()).toString()).toContain('"code":"invalid_json"');
  });

  it.each([
    ['an empty body', ''],
    ['a blank body', ' \n'],
    ['a byte order mark', '\uFEFF{}'],
    ['UTF-16', Buffer.from('{"a":"b"}', 'utf16le')],
    ['a byte that is not UTF-8', Buffer.from([0x22, 0xff, 0x22])],
    ['an overlong encoding', Buffer.from([0x22, 0xc0, 0xaf, 0x22])],
    ['a surrogate in UTF-8', Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22])],
    ['a cut character', Buffer.from([0x22, 0xc3])],
    ['a raw control character', '"\u0001"'],
    ['a cut body', '{"a":'],
  ])('refuses %s as malformed, without quoting it', async (_, body) => {
    expect(await send(body)).toBe('invalid_json');
    expect(logged.lines).toEqual([]);
  });

  it.each(['"\\ud800"', '"a\\udc00b"', '{"a":[{"b":"\\ud83d"}]}', '"\\udf89\\ud83c"'])(
    'refuses the lone surrogate in %s',
    async (body) => {
      expect(await send(body)).toBe('invalid_request');
    },
  );

  // Only values are looked at; harmless as long as no key is stored, told or logged.
  it('refuses a lone surrogate in a key', async () => {
    expect(await send('{"a":{"\\ud800":1}}')).toBe('invalid_request');
  });

  it('reads an escaped pair of surrogates', async () => {
    expect(await send('"\\ud83c\\udf89"')).toBe('read');
    expect(read).toBe('🎉');
  });

  it('reads 32 levels and refuses one more, however they are made', async () => {
    expect(await send(nested(32))).toBe('read');
    expect(await send(nested(33))).toBe('invalid_request');
    expect(await send(`${'{"a":'.repeat(32)}1${'}'.repeat(32)}`)).toBe('read');
    expect(await send(`${'{"a":'.repeat(33)}1${'}'.repeat(33)}`)).toBe('invalid_request');
    expect(await send(`[${nested(31)},${nested(32)}]`)).toBe('invalid_request');
  });

  it.each([50_000, 500_000])('survives %i levels', async (depth) => {
    expect(await send(nested(depth))).toBe('invalid_request');
    expect(await send('['.repeat(depth))).toBe('invalid_request');
    expect(await send('{}')).toBe('read');
  });

  it('reads 100,000 keys', async () => {
    const keys = Object.fromEntries(Array.from({ length: 100_000 }, (_, n) => [`key${n}`, n]));
    expect(await send(JSON.stringify(keys), json, '/large')).toBe('read');
    expect(read).toEqual(keys);
  });

  it.each([
    ['numbers', `[${Array(100_001).fill(0).join()}]`],
    ['arrays', `[${Array(100_001).fill('[]').join()}]`],
    [
      'arrays in arrays',
      `[${Array(10)
        .fill(`[${Array(10_000).fill(0).join()}]`)
        .join()}]`,
    ],
    ['members', `{${Array.from({ length: 100_001 }, (_, n) => `"${n}":0`).join()}}`],
  ])('refuses more than 100,000 values: %s', async (_, body) => {
    expect(await send(body, json, '/large')).toBe('invalid_request');
  });

  it('takes nothing in a text for a value', async () => {
    const text = '[{,"\\}]'.repeat(100_000);
    expect(await send(JSON.stringify([text, { [text]: 1 }]), json, '/large')).toBe('read');
    expect(read).toEqual([text, { [text]: 1 }]);
  });

  it('reads as much as its limit and no byte more, whether announced or chunked', async () => {
    expect(await send(sized(maxBytes))).toBe('read');
    expect(await send(sized(maxBytes + 1))).toBe('payload_too_large');
    expect(await sendChunked(sized(maxBytes))).toBe(204);
    expect(await sendChunked(sized(maxBytes + 1))).toBe(413);
  });

  // body-parser first reads all that was announced, so a sender can keep the server reading for as long as it likes.
  it('refuses a body that is announced as too large before it arrives', async () => {
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

  it.each([
    ['gzip', gzipSync],
    ['GZIP', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
    ['zstd', zstdCompressSync],
  ] as const)('is read with %s', async (encoding, compress) => {
    expect(await send(compress('{"a":1}'), encoded(encoding))).toBe('read');
    expect(read).toEqual({ a: 1 });
  });

  it.each(['rot13', 'gzip, gzip', 'x-canary'])('is refused with %j', async (encoding) => {
    expect(await send('{}', encoded(encoding))).toBe('unsupported_media_type');
  });

  it('is held to the limit by what comes out of it', async () => {
    // Before the first is sent: compressing takes seconds where there is much else to do, and a kept connection would
    // be closed meanwhile.
    const [fits, exceeds, explodes] = [
      sized(maxBytes),
      sized(maxBytes + 1),
      Buffer.alloc(200 * maxBytes),
    ].map((body) => gzipSync(body)) as [Buffer, Buffer, Buffer];
    expect(await send(fits, encoded('gzip'))).toBe('read');
    for (const body of [exceeds, explodes])
      expect(await send(body, encoded('gzip'))).toBe('payload_too_large');
  });

  // zlib's errors reach the problem handler without the `type` it knows body-parser's errors by.
  it.each([
    ['cut', gzipSync('{"a":1}').subarray(0, 20)],
    ['of another kind', Buffer.from('{"a":1}')],
    ['empty', Buffer.alloc(1)],
  ])('is the fault of its sender when it is %s', async (_, body) => {
    expect(await send(body, encoded('gzip'))).toBe('invalid_json');
  });
});

it('reads a body that comes byte by byte, and another one on the same connection', async () => {
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
