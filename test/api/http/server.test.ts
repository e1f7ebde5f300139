import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import express, { type Response } from 'express';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { ApiServer } from '../../../api/http/server.js';
import { patience } from '../../support/patience.js';

const app = express();
app.post('/', express.text({ type: () => true }), (_request, response) => void response.send('read'));
app.get('/never', () => undefined);
/** Requests for `/held`, which the test answers. */
const held: Response[] = [];
app.get('/held', (_request, response) => void held.push(response));
app.get('/short', (_request, response) => void response.send('short'));
const long = Buffer.alloc(64 * 1024 * 1024, 'x');
app.get('/long', (_request, response) => void response.send(long));
const stalledMs = 3_600_000;
/** A server with these times. */
async function start(times: { stalledMs?: number; requestMs?: number }, isDraining = false) {
  const api = new ApiServer({ app, draining: () => isDraining, ...times });
  const server = await api.listen(0, '127.0.0.1');
  const { port } = server.address() as AddressInfo;
  return { api, server, port, end: () => api.close({ graceMs: 0, onGraceOver: () => undefined }) };
}
const { server: listening, port, end } = await start({ stalledMs });
afterAll(end);

/** All that the server says to these bytes until it ends the connection. */
async function saidTo(bytes: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.write(bytes);
  return Buffer.concat(await socket.toArray()).toString();
}

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;

const unreadable = 'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nno length\r\n';

describe('ApiServer', () => {
  it.each([
    ['a chunk without a length', unreadable],
    ['an unknown transfer coding', 'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: x\r\n\r\ntext'],
    ['no HTTP at all', 'hello\r\n\r\n'],
  ])('%s -> a problem', async (_, bytes) => {
    const said = await saidTo(bytes);
    expect(said).toMatch(/^HTTP\/1\.1 400 /);
    expect(said).toMatch(/content-type: application\/problem\+json/i);
  });

  it('a body that cannot be read, while an earlier request waits for its answer -> nothing is said', async () => {
    expect(await saidTo(`GET /never HTTP/1.1\r\nHost: x\r\n\r\n${unreadable}`)).toBe('');
  });

  it('a connection without a request -> Node ends it after 65 s, or after 30 s before the first', () => {
    expect([listening.keepAliveTimeout, listening.headersTimeout]).toEqual([65_000, 30_000]);
  });

  it('a client that does not read its answer -> is disconnected', async () => {
    const impatient = await start({ stalledMs: 50 });
    const socket = connect(impatient.port, '127.0.0.1');
    socket.write(get('/long'));
    const [request] = (await once(impatient.server, 'request')) as [IncomingMessage];
    await once(request.socket, 'close');
    socket.destroy();
    await impatient.end();
  });

  it('a client that waits for its answer -> no time counts against it until there is one to be read', async () => {
    held.length = 0;
    const socket = connect(port, '127.0.0.1');
    const asked = once(listening, 'request');
    // The first answer leaves its timeout behind.
    socket.write(get('/short') + get('/held') + get('/long'));
    const [{ socket: accepted }] = (await asked) as [IncomingMessage];
    await vi.waitFor(() => expect(held).toHaveLength(1), patience);
    expect(accepted.timeout).toBe(0);
    held[0]?.send('held');
    // Node's own timeout of a socket, which begins again with each byte that the client reads.
    await vi.waitFor(() => expect(accepted.timeout).toBe(stalledMs), patience);
    expect(socket.destroyed).toBe(false);
    socket.destroy();
  });

  it('several requests on a connection -> each begins when the one before it is answered', async () => {
    held.length = 0;
    const socket = connect(port, '127.0.0.1');
    socket.write(get('/held').repeat(3) + get('/short'));
    for (const count of [1, 2, 3]) {
      await vi.waitFor(() => expect(held).toHaveLength(count), patience);
      // As many turns as the others would need to be begun.
      await saidTo(`GET /short HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
      expect(held).toHaveLength(count);
      held.at(-1)?.send('held');
    }
    let said = '';
    for await (const chunk of socket.setEncoding('utf8')) {
      said += chunk;
      if (said.endsWith('short')) break;
    }
    expect(said.match(/held$|held(?=HTTP)|short$/gm)).toEqual(['held', 'held', 'held', 'short']);
  });

  it('more than 32 requests wait for their answers on a connection -> it is ended', async () => {
    held.length = 0;
    const socket = connect(port, '127.0.0.1');
    socket.write(get('/held').repeat(32));
    await vi.waitFor(() => expect(held).toHaveLength(1), patience);
    expect(await saidTo(get('/held').repeat(33))).toBe('');
    expect(socket.destroyed).toBe(false);
    socket.write(get('/held'));
    await once(socket, 'close');
    expect(held).toHaveLength(2);
    expect(held.every(({ closed }) => closed)).toBe(true);
  });

  it('a connection is closed before the turn of its requests comes -> they are forgotten', async () => {
    held.length = 0;
    const stopping = await start({});
    const socket = connect(stopping.port, '127.0.0.1');
    socket.write(get('/held').repeat(3));
    await vi.waitFor(() => expect(held).toHaveLength(1), patience);
    socket.destroy();
    await once(held[0] as Response, 'close');
    let isOver = false;
    await stopping.api.close({ graceMs: 30_000, onGraceOver: () => (isOver = true) });
    expect({ isOver, begun: held.length }).toEqual({ isOver: false, begun: 1 });
  });

  it.each([
    ['a body', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n'],
    ['headers', 'GET /short HTTP/1.1\r\nHost: x\r\nX-Long: '],
  ])('%s that drips -> the request is refused when it takes too long to be there', async (_, beginning) => {
    const impatient = await start({ requestMs: 300 });
    const socket = connect(impatient.port, '127.0.0.1').on('error', () => undefined);
    socket.write(beginning);
    const dripping = setInterval(() => socket.write('x'), 20);
    const [said] = (await once(socket, 'data')) as [Buffer];
    clearInterval(dripping);
    expect(said.toString()).toMatch(/^HTTP\/1\.1 408 /);
    expect(said.toString()).toContain('application/problem+json');
    socket.destroy();
    await impatient.end();
  });

  /** A server that is to stop while a request is in flight; `leave` ends it. */
  async function startStopping() {
    const { api: stopping, server, port } = await start({}, true);
    const url = `http://127.0.0.1:${port}`;
    const asked = once(server, 'request');
    const client = new AbortController();
    const unanswered = fetch(`${url}/never`, { signal: client.signal }).catch(() => 'cut off');
    await asked;
    const askLate = () => fetch(url, { method: 'POST', body: 'text' });
    return { stopping, server, unanswered, askLate, leave: () => client.abort() };
  }

  it('is closed while a request is in flight -> takes others until there are none', async () => {
    const { stopping, askLate, leave } = await startStopping();
    let isOver = false;
    const closing = stopping.close({ graceMs: 3_600_000, onGraceOver: () => (isOver = true) });
    expect((await askLate()).status).toBe(200);
    leave();
    await closing;
    await expect(askLate()).rejects.toThrow();
    expect(isOver).toBe(false);
  });

  it('is closed while a request is in flight -> takes no others before the grace ends, and then cuts it off', async () => {
    const { stopping, server, unanswered } = await startStopping();
    const wasListening: boolean[] = [];
    await stopping.close({ graceMs: 100, onGraceOver: () => wasListening.push(server.listening) });
    expect(wasListening).toEqual([false]);
    expect(await unanswered).toBe('cut off');
  });
});
