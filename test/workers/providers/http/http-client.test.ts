import { once } from 'node:events';
import {
  createServer as createHttpServer,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type RequestListener,
  type ServerResponse,
} from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import * as zlib from 'node:zlib';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  type Connecting,
  HttpClient,
  type HttpRequest,
} from '../../../../workers/providers/http/http-client.js';
import { EventBytes } from '../../../../workers/providers/http/stream-pieces.js';
import { makeAuthority } from '../../../support/certificates.js';
import { serve } from '../../../support/serve.js';

const maxResponseBytes = 100_000;
const tooLarge = { code: 'provider_error', retryable: false };

/** A client, and how to have it send a request to a server that answers like this. */
async function connectTo(listener: RequestListener, connecting?: Connecting) {
  const http = new HttpClient(maxResponseBytes, connecting);
  const { url, close } = await serve((request, response) => {
    request.resume().on('end', () => listener(request, response));
  });
  onTestFinished(() => {
    http.close();
    return close();
  });
  const send = (facts: Partial<HttpRequest> = {}) =>
    http.send({ ...{ origin: url, path: '/', method: 'POST', headers: {}, body: 'hello' }, ...facts });
  return { http, send };
}

async function readAll(body: Buffer | EventBytes): Promise<number> {
  if (!(body instanceof EventBytes)) return body.length;
  let length = 0;
  for await (const chunk of body) length += chunk.length;
  return length;
}

const events = { 'Content-Type': 'text/event-stream' };
const kinds = [
  { kind: 'a whole answer', headers: {} },
  { kind: 'an event of a stream', headers: events },
];

describe.each(kinds)('the limit of $kind', ({ headers }) => {
  it.each([
    { said: 'its length', length: { 'Content-Length': maxResponseBytes } },
    { said: 'no length', length: {} },
  ])('lets pass what is as large as the limit and says $said', async ({ length }) => {
    const { send } = await connectTo((_, response) => {
      response.writeHead(200, { ...headers, ...length }).end(Buffer.alloc(maxResponseBytes));
    });
    expect(await readAll((await send()).body)).toBe(maxResponseBytes);
  });
});

describe('HttpClient', () => {
  it('does not wait for a body that says it is too large', async () => {
    const closed = Promise.withResolvers<void>();
    const { send } = await connectTo((_, response) => {
      response
        .on('close', closed.resolve)
        .writeHead(200, { 'Content-Length': maxResponseBytes + 1 })
        .write('a');
    });
    await expect(send()).rejects.toMatchObject(tooLarge);
    await closed.promise;
  });

  it('reads an error to its end, although it says that it is a stream', async () => {
    const { send } = await connectTo((_, response) => void response.writeHead(500, events).end('broken'));
    expect(await send()).toMatchObject({ status: 500, body: Buffer.from('broken') });
  });

  it.each([204, 205, 304])('takes a %i for an answer without a body', async (status) => {
    const { send } = await connectTo((_, response) => void response.writeHead(status).end());
    expect(await send()).toMatchObject({ status, body: Buffer.alloc(0) });
  });

  it('waits for the answer behind early hints, and follows no redirect', async () => {
    const { send } = await connectTo((_, response) => {
      response.writeEarlyHints({ link: '</a>; rel=preload', 'content-type': 'text/event-stream' });
      response.writeHead(307, { Location: '/elsewhere' }).end('moved');
    });
    const { status, headers, body } = await send();
    expect([status, headers.location, String(body)]).toEqual([307, '/elsewhere', 'moved']);
  });

  it('asks for no compression, and sends what it is given', async () => {
    const requests: IncomingMessage[] = [];
    const { send } = await connectTo((request, response) => {
      requests.push(request);
      response.end();
    });
    await send({ path: '/a%2Fb?c=d', method: 'PUT', headers: { 'x-some': 'thing' } });
    expect(requests[0]).toMatchObject({ url: '/a%2Fb?c=d', method: 'PUT' });
    expect(requests[0]?.headers).toMatchObject({ 'x-some': 'thing', 'content-length': '5' });
    expect(requests[0]?.headers).toHaveProperty('accept-encoding', 'identity');
  });

  it('has a connection for every call at once, and uses them again', async () => {
    const sockets = new Set<Socket>();
    const waiting: ServerResponse[] = [];
    const { send } = await connectTo((request, response) => {
      sockets.add(request.socket);
      waiting.push(response);
      if (waiting.length === 40) for (const each of waiting.splice(0)) each.end();
    });
    for (let round = 0; round < 5; round += 1) await Promise.all(Array.from({ length: 40 }, () => send()));
    // A connection is free a turn of the event loop after its answer, and another call may begin in it.
    expect(sockets.size).toBeLessThanOrEqual(80);
  });

  it('sends the next call on a new connection when the provider has closed the idle one', async () => {
    const sockets: Socket[] = [];
    const { send } = await connectTo((request, response) => {
      sockets.push(request.socket);
      response.end('well');
    });
    await send();
    sockets[0]?.end();
    await once(sockets[0] as Socket, 'close');
    expect(String((await send()).body)).toBe('well');
    expect(new Set(sockets).size).toBe(2);
  });

  it('closes connections that are idle', async () => {
    const closed = Promise.withResolvers<void>();
    const { http, send } = await connectTo((request, response) => {
      request.socket.on('close', () => closed.resolve());
      response.end();
    });
    await send();
    http.close();
    await closed.promise;
  });

  it('reports each line of a stream, not single bytes, and loses nothing that is read late', async () => {
    const answering = Promise.withResolvers<ServerResponse>();
    const { send } = await connectTo((_, response) => {
      response.writeHead(200, events).flushHeaders();
      answering.resolve(response);
    });
    let active = 0;
    const body = (await send({ onLife: () => (active += 1) })).body as EventBytes;
    const response = await answering.promise;
    const read = async () => [(await body.next()).value?.toString(), active];
    response.write(': ');
    for (let turn = 0; turn < 20; turn += 1) await nextTurn();
    expect(await read()).toEqual([': ', 0]);
    response.write('ping\n');
    expect(await read()).toEqual(['ping\n', 1]);
    response.end();
    expect((await body.next()).done).toBe(true);
  });

  it('ends a call at once that is aborted before it has a connection, and sends nothing of it', async () => {
    let requests = 0;
    const { send } = await connectTo((_, response) => {
      requests += 1;
      response.end();
    });
    const controller = new AbortController();
    const reason = new Error('the deadline passed');
    const sending = send({ signal: controller.signal });
    controller.abort(reason);
    await expect(sending).rejects.toBe(reason);
    await send();
    expect(requests).toBe(1);
  });

  it('a server that does not come to speak TLS -> cannot be reached', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { send } = await connectTo(() => {}, { connectTimeoutMs: 50 });
    onTestFinished(() => void server.close());
    const sending = send({ origin: `https://127.0.0.1:${portOf(server)}` });
    await expect(sending).rejects.toMatchObject({ code: 'UND_ERR_CONNECT_TIMEOUT' });
  });

  it('speaks TLS, and only to a server whose certificate it trusts', async () => {
    const { origin, trust } = await serveSecret('127.0.0.1');
    const { send } = await connectTo(() => {});
    await expect(send({ origin })).rejects.toMatchObject({ code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' });
    trust();
    const { status, body } = await send({ origin });
    expect([status, String(body)]).toEqual([200, 'secret']);
  });

  it.each<[string, noProxy: string | undefined, asked: string[]]>([
    ['provider.test', undefined, ['provider.test:443']],
    ['provider.test', 'other.test, test', []],
    ['127.0.0.1', undefined, []],
  ])(
    'behind a proxy, https://%s, without it for %s -> asks the proxy for %j',
    async (host, noProxy, asked) => {
      const { origin, port, trust } = await serveSecret(host);
      trust();
      const tunnels: string[] = [];
      const proxy = createHttpServer().on('connect', ({ url = '' }, socket: Socket) => {
        tunnels.push(url);
        const through = connect(port, '127.0.0.1', () => socket.write('HTTP/1.1 200 OK\r\n\r\n'));
        socket.pipe(through).pipe(socket);
      });
      await once(proxy.listen(0, '127.0.0.1'), 'listening');
      onTestFinished(() => void proxy.close());
      const { send } = await connectTo(() => {}, { proxy: `http://127.0.0.1:${portOf(proxy)}`, noProxy });
      const answer = await send({ origin }).catch(() => undefined);
      expect(tunnels).toEqual(asked);
      // No name server knows the host, so it was called directly.
      expect(answer?.status).toBe(noProxy === undefined ? 200 : undefined);
    },
  );
});

/** Encodes nothing. */
const createIdentity = () => Object.assign(new PassThrough(), { flush: () => {} });

const identity = { coding: 'identity', compress: Buffer.from, createEncoder: createIdentity };
const codings = [
  { coding: 'gzip', compress: zlib.gzipSync, createEncoder: zlib.createGzip },
  { coding: 'X-GZip', compress: zlib.gzipSync, createEncoder: zlib.createGzip },
  { coding: 'br', compress: zlib.brotliCompressSync, createEncoder: zlib.createBrotliCompress },
  { coding: 'deflate', compress: zlib.deflateSync, createEncoder: zlib.createDeflate },
  { coding: 'deflate', compress: zlib.deflateRawSync, createEncoder: zlib.createDeflateRaw },
  { coding: 'zstd', compress: zlib.zstdCompressSync, createEncoder: zlib.createZstdCompress },
];

/** A client of a server that answers with these bytes in a coding. */
const answerIn = (coding: string, body: Buffer, headers: OutgoingHttpHeaders = {}, status = 200) =>
  connectTo((_, response) => {
    response.writeHead(status, { 'Content-Encoding': coding, ...headers }).end(body);
  });

describe.each([identity, ...codings])('an answer in $coding', ({ coding, compress, createEncoder }) => {
  it.each([200, 400])('with status %i -> is decoded', async (status) => {
    const { send } = await answerIn(coding, compress('{"a":1}'), {}, status);
    expect(await send()).toMatchObject({ status, body: Buffer.from('{"a":1}') });
  });

  it.each([200, 204, 500])('with status %i and no body -> has none', async (status) => {
    const { send } = await answerIn(coding, Buffer.alloc(0), {}, status);
    expect(await send()).toMatchObject({ status, body: Buffer.alloc(0) });
  });

  it('is a stream -> gives each event as it comes, and reports its lines', async () => {
    const opened = Promise.withResolvers<ReturnType<typeof createEncoder>>();
    const { send } = await connectTo((_, response) => {
      const encoder = createEncoder();
      encoder.pipe(response.writeHead(200, { ...events, 'Content-Encoding': coding }));
      opened.resolve(encoder);
    });
    let lines = 0;
    const sending = send({ onLife: () => (lines += 1) });
    const encoder = await opened.promise;
    const write = (text: string) => {
      encoder.write(text);
      encoder.flush();
    };
    write('data: 1\n');
    const body = (await sending).body as EventBytes;
    expect([String((await body.next()).value), lines]).toEqual(['data: 1\n', 1]);
    write('data: 2\n');
    expect([String((await body.next()).value), lines]).toEqual(['data: 2\n', 2]);
    encoder.end();
    expect((await body.next()).done).toBe(true);
  });

  it('is a long stream -> is read whole, and the provider waits while it is not read', async () => {
    const all = 20_000_000;
    const sent = compress(Buffer.alloc(all, 'data: 1\n\n'));
    const { send } = await answerIn(coding, sent, { ...events, 'Content-Length': sent.length });
    const { body } = await send();
    for (let turn = 0; turn < 200; turn += 1) await nextTurn();
    const { value } = await (body as EventBytes).next();
    expect(value?.length).toBeLessThan(1_000_000);
    expect((value?.length ?? 0) + (await readAll(body))).toBe(all);
  });

  it.each(kinds)('is larger than the limit once decoded ($kind) -> fails', async ({ headers }) => {
    const { send } = await answerIn(coding, compress(Buffer.alloc(64 * maxResponseBytes, ' ')), headers);
    await expect(send().then(({ body }) => readAll(body))).rejects.toMatchObject(tooLarge);
  });

  it.each(kinds)('is too large and does not end ($kind) -> the connection is closed', async ({ headers }) => {
    const encoder = createEncoder();
    const closed = Promise.withResolvers<void>();
    const { send } = await connectTo((_, response) => {
      response.on('close', closed.resolve).writeHead(200, { ...headers, 'Content-Encoding': coding });
      encoder.pipe(response);
      encoder.write(Buffer.alloc(maxResponseBytes + 1));
      encoder.flush();
    });
    await expect(send().then(({ body }) => readAll(body))).rejects.toMatchObject(tooLarge);
    await closed.promise;
  });

  it('is aborted while it has come whole and is not read -> ends with the reason', async () => {
    const { send } = await answerIn(coding, compress(Buffer.alloc(20_000_000, 'data: 1\n\n')), events);
    const controller = new AbortController();
    const reason = new Error('the deadline passed');
    const { body } = await send({ signal: controller.signal });
    await (body as EventBytes).next();
    controller.abort(reason);
    await expect(readAll(body)).rejects.toBe(reason);
  });
});

describe.each(codings)('an answer in $coding, for which nobody has asked', ({ coding, compress }) => {
  it.each(kinds)('breaks off ($kind) -> fails', async ({ headers }) => {
    const { send } = await answerIn(coding, compress('data: {"a":1}\n\n').subarray(0, -2), headers);
    await expect(send().then(({ body }) => readAll(body))).rejects.toThrow();
  });

  it.each(kinds)('is not in it at all ($kind) -> fails', async ({ headers }) => {
    const { send } = await answerIn(coding, Buffer.from('no such thing'), headers);
    await expect(send().then(({ body }) => readAll(body))).rejects.toThrow();
  });

  it('is followed by other bytes -> is what came before, and the connection is closed', async () => {
    const closed = Promise.withResolvers<void>();
    const { send } = await connectTo((_, response) => {
      response.on('close', closed.resolve).writeHead(200, { 'Content-Encoding': coding });
      response.write(Buffer.concat([compress('{"a":1}'), Buffer.alloc(100_000)]));
    });
    const { body } = await send();
    expect(String(body)).toBe('{"a":1}');
    await closed.promise;
  });
});

it.each(['utf-8', 'identity', 'compress', 'constructor', ''])(
  'an answer in %j, which is not to be decoded -> is left as it is',
  async (coding) => {
    const { send } = await connectTo((_, response) => {
      response.writeHead(200, { 'Content-Encoding': coding }).end('{"a":1}');
    });
    expect(String((await send()).body)).toBe('{"a":1}');
  },
);

const portOf = (server: Server): number => (server.address() as AddressInfo).port;

/** Serves this host by TLS, a name at its usual port; `trust` has its certificate trusted. */
async function serveSecret(host: string) {
  const authority = makeAuthority();
  const { certificate, key } = authority.issue(host === '127.0.0.1' ? undefined : host);
  const server = createHttpsServer({ cert: certificate, key }, (_, response) => response.end('secret'));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const trusted = getCACertificates('default');
  onTestFinished(() => {
    setDefaultCACertificates(trusted);
    server.closeAllConnections();
    server.close();
  });
  const port = portOf(server);
  const origin = host === '127.0.0.1' ? `https://${host}:${port}` : `https://${host}`;
  return { origin, port, trust: () => setDefaultCACertificates([...trusted, authority.certificate]) };
}
