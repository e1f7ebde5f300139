import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
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
/** Long enough for a busy machine to move some bytes in it. */
const stalledMs = 1500;
const api = new ApiServer({ app, draining: () => false, stalledMs });
const listening = await api.listen(0, '127.0.0.1');
const { port } = listening.address() as AddressInfo;
afterAll(() => api.close({ graceMs: 0, onGraceOver: () => undefined }));

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
  ])('answers %s with a problem', async (_, bytes) => {
    const said = await saidTo(bytes);
    expect(said).toMatch(/^HTTP\/1\.1 400 /);
    expect(said).toMatch(/content-type: application\/problem\+json/i);
  });

  it('says nothing about a body that cannot be read while an earlier request waits for its answer', async () => {
    expect(await saidTo(`GET /never HTTP/1.1\r\nHost: x\r\n\r\n${unreadable}`)).toBe('');
  });

  it('disconnects a client that does not read its answer', async () => {
    const socket = connect(port, '127.0.0.1');
    socket.write('GET /long HTTP/1.1\r\nHost: x\r\n\r\n');
    const [request] = (await once(listening, 'request')) as [IncomingMessage];
    await once(request.socket, 'close');
    socket.destroy();
  });

  it('waits as long as it takes for one that reads slowly, and for one whose answer takes its time', async () => {
    const waiting = connect(port, '127.0.0.1');
    waiting.write('GET /never HTTP/1.1\r\nHost: x\r\n\r\n');
    const [unanswered] = (await once(listening, 'request')) as [IncomingMessage];
    const response = await fetch(`http://127.0.0.1:${port}/long`);
    let bytes = 0;
    for await (const chunk of response.body ?? []) {
      bytes += chunk.length;
      // This test is about time: the client takes longer for these than it may do nothing for.
      if (bytes < 4_000_000) await delay(stalledMs / 20);
    }
    expect(bytes).toBe(long.length);
    expect(unanswered.socket.destroyed).toBe(false);
    waiting.destroy();
  });

  it('begins with a request when the one before it on the connection is answered', async () => {
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

  it('ends a connection on which more than 32 requests wait for their answers', async () => {
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

  it('forgets requests whose connection was closed before their turn came', async () => {
    held.length = 0;
    const stopping = new ApiServer({ app, draining: () => false });
    const server = await stopping.listen(0, '127.0.0.1');
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    socket.write(get('/held').repeat(3));
    await vi.waitFor(() => expect(held).toHaveLength(1), patience);
    socket.destroy();
    await once(held[0] as Response, 'close');
    let isOver = false;
    await stopping.close({ graceMs: 30_000, onGraceOver: () => (isOver = true) });
    expect({ isOver, begun: held.length }).toEqual({ isOver: false, begun: 1 });
  });

  it('counts no time against a slow reader while it waits for an answer itself', async () => {
    held.length = 0;
    const socket = connect(port, '127.0.0.1');
    socket.write(get('/short') + get('/held') + get('/short'));
    await vi.waitFor(() => expect(held).toHaveLength(1), patience);
    // This test is about time: twice as long as a reader may do nothing.
    await delay(2 * stalledMs);
    expect(socket.destroyed).toBe(false);
    expect(held[0]?.closed).toBe(false);
    socket.destroy();
  });

  it.each([
    ['a body', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n'],
    ['headers', 'GET /short HTTP/1.1\r\nHost: x\r\nX-Long: '],
  ])('gives a request a time in which it has to be there, with %s that drips', async (_, beginning) => {
    const impatient = new ApiServer({ app, draining: () => false, requestMs: 300 });
    const server = await impatient.listen(0, '127.0.0.1');
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => undefined);
    socket.write(beginning);
    const dripping = setInterval(() => socket.write('x'), 20);
    const [said] = (await once(socket, 'data')) as [Buffer];
    clearInterval(dripping);
    expect(said.toString()).toMatch(/^HTTP\/1\.1 408 /);
    expect(said.toString()).toContain('application/problem+json');
    socket.destroy();
    await impatient.close({ graceMs: 0, onGraceOver: () => undefined });
  });

  it('takes requests while others are in flight, for half of the grace at most, and ends when the grace does', async () => {
    const stopping = new ApiServer({ app, draining: () => true });
    const server = await stopping.listen(0, '127.0.0.1');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const asked = once(server, 'request');
    const unanswered = fetch(`${url}/never`).catch(() => 'cut off');
    await asked;
    let over = false;
    const closing = stopping.close({ graceMs: 2000, onGraceOver: () => undefined });
    const closed = closing.then(() => {
      over = true;
    });
    const late = () => fetch(url, { method: 'POST', body: 'text' });
    expect((await late()).status).toBe(200);
    await vi.waitFor(() => expect(late()).rejects.toThrow(), patience);
    expect(over).toBe(false);
    await closed;
    expect(await unanswered).toBe('cut off');
  });
});
