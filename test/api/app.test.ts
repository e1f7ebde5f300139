import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ChatApp, startChatApp } from '../support/chat-app.js';

let app: ChatApp;
let isAccepting = false;
const accepted = { kind: 'accepted', id: 'the-id', status: 'queued' } as const;
beforeAll(async () => {
  app = await startChatApp({ reply: () => (isAccepting ? accepted : undefined) });
});
afterAll(() => app.close());

const user = `Basic ${btoa('user:secret')}`;
const credentials = `Authorization: ${user}`;
const body = '{"messages":[{"content":"Hello"}]}';

/** All that is answered to a chat with these headers beside the usual ones. */
async function saidTo(headers: string[], sent: string): Promise<string> {
  const socket = connect(Number(new URL(app.url).port), '127.0.0.1');
  const head = ['POST /chat HTTP/1.1', credentials, 'X-LLM: openai', 'Connection: close', ...headers];
  socket.write(`${head.join('\r\n')}\r\n\r\n${sent}`);
  return Buffer.concat(await socket.toArray()).toString();
}

const host = 'Host: x';
const json = 'Content-Type: application/json';
const length = `Content-Length: ${body.length}`;
const chunks = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;

describe('createApp', () => {
  it.each([
    ['two hosts', ['Host: y'], 400, 'invalid_request'],
    ['the same host twice', [host], 400, 'invalid_request'],
    ['two media types', ['Content-Type: text/plain'], 400, 'invalid_request'],
  ])('refuses %s', async (_, headers, status, code) => {
    const said = await saidTo([host, json, length, ...headers], body);
    expect(said).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(said).toContain(`"code":"${code}"`);
  });

  it.each([
    ['gzip, chunked', '501'],
    ['identity, chunked', '(501|400)'],
    ['chunked, chunked', '(501|400)'],
  ])('does not undo the transfer coding %s, and ends the connection', async (coding, status) => {
    const said = await saidTo([host, json, `Transfer-Encoding: ${coding}`], chunks);
    expect(said).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(said).toMatch(/Connection: close/i);
  });

  it('takes a body in chunks, however that is spelled', async () => {
    expect(await saidTo([host, json, 'Transfer-Encoding: Chunked'], chunks)).toMatch(/^HTTP\/1.1 200 /);
  });

  it.each(['/METRICS', '/metrics/', '/Livez', '/docs/', '/Chat', '/chat/', '/V1/chat', '/blogs/'])(
    'has nothing at %s: an address has one spelling',
    async (path) => {
      const response = await fetch(app.url + path);
      expect(response.status).toBe(404);
      expect(await response.json()).toMatchObject({ code: 'not_found' });
    },
  );

  it.each([
    ['an answer', 200, () => app.post({})],
    ['an accepted chat', 202, () => app.post({ headers: { Prefer: 'respond-async' } })],
    ['a bad request', 400, () => app.post({ body: '{}' })],
    ['no credentials', 401, () => app.post({ headers: { Authorization: '' } })],
    ['another method', 405, () => fetch(`${app.url}/v1/chat`)],
    ['no such chat', 404, () => fetch(`${app.url}/chat/x`, { headers: { Authorization: user } })],
    ['a problem of the blog', 401, () => fetch(`${app.url}/blogs`, { method: 'POST' })],
    ['no address', 404, () => fetch(`${app.url}/nothing`)],
  ])('has nobody store %s', async (_, status, ask) => {
    isAccepting = status === 202;
    const response = await ask();
    expect([response.status, response.headers.get('cache-control')]).toEqual([status, 'no-store']);
  });
});
