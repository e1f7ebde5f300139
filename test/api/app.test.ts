import { connect } from 'node:net';
import { afterAll, describe, expect, it } from 'vitest';
import { basic, startApp } from '../support/app.js';

let isAccepting = false;
const accepted = { kind: 'accepted', id: 'the-id', status: 'queued' } as const;
const app = await startApp({ reply: () => (isAccepting ? accepted : undefined) });
afterAll(app.close);

const credentials = `Authorization: ${basic('user')}`;
const body = '{"messages":[{"content":"Hello"}]}';

/** All that is answered to a chat with these headers beside the usual ones. */
async function saidTo(headers: string[], sent: string): Promise<string> {
  const socket = connect(app.port, '127.0.0.1');
  const head = ['POST /chat HTTP/1.1', credentials, 'X-LLM: openai', 'Connection: close', ...headers];
  socket.write(`${head.join('\r\n')}\r\n\r\n${sent}`);
  return Buffer.concat(await socket.toArray()).toString();
}

const host = 'Host: x';
const json = 'Content-Type: application/json';
const length = `Content-Length: ${body.length}`;
const chunks = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;

describe('a request', () => {
  it.each([
    ['two hosts', 'Host: y'],
    ['the same host twice', host],
    ['two media types', 'Content-Type: text/plain'],
  ])('has %s -> 400', async (_, header) => {
    const said = await saidTo([host, json, length, header], body);
    expect(said).toMatch(/^HTTP\/1.1 400 /);
    expect(said).toContain('"code":"invalid_request"');
  });

  it.each([
    ['gzip, chunked', '501'],
    ['identity, chunked', '(501|400)'],
    ['chunked, chunked', '(501|400)'],
  ])('has the transfer coding %s -> it is refused, and the connection ends', async (coding, status) => {
    const said = await saidTo([host, json, `Transfer-Encoding: ${coding}`], chunks);
    expect(said).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(said).toMatch(/Connection: close/i);
  });

  it('has a body in chunks, however that is spelled -> it is read', async () => {
    expect(await saidTo([host, json, 'Transfer-Encoding: Chunked'], chunks)).toMatch(/^HTTP\/1.1 200 /);
  });

  it.each(['/METRICS', '/metrics/', '/Livez', '/docs/', '/nothing'])(
    'is for %s -> there is nothing, and nobody stores that',
    async (path) => {
      const { status, headers, body } = await app.ask({ path });
      expect([status, headers.get('cache-control'), body.code]).toEqual([404, 'no-store', 'not_found']);
    },
  );

  it.each([
    ['answered', 200, {}],
    ['accepted', 202, { headers: { Prefer: 'respond-async' } }],
  ])('is a chat that is %s -> nobody stores that', async (_, status, call) => {
    isAccepting = status === 202;
    const response = await app.chat(call);
    expect([response.status, response.headers.get('cache-control')]).toEqual([status, 'no-store']);
  });
});
