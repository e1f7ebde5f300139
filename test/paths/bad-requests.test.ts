import { once } from 'node:events';
import { Agent, type IncomingMessage, type OutgoingHttpHeaders, request } from 'node:http';
import { connect } from 'node:net';
import { json as readJson } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Post, Problem } from '../../shared/contract.js';
import { authorization, blogToken, type Deployment, startDeployment } from '../support/deployment.js';

let deployment: Deployment;
let post: Post;
beforeAll(async () => {
  deployment = await startDeployment({});
  post = (await (await deployment.blog('/blogs', { json: { content: 'x' } })).json()) as Post;
});
afterAll(() => deployment.stop());

interface Sent {
  method?: string;
  path: string;
  headers?: OutgoingHttpHeaders;
  body?: string | Uint8Array;
}

function open({ method = 'POST', path, headers = {} }: Omit<Sent, 'body'>) {
  const { hostname, port } = new URL(deployment.url);
  const isChat = path === '/chat';
  const usual = {
    Authorization: isChat ? authorization : `Bearer ${blogToken}`,
    'Content-Type': 'application/json',
    ...(isChat && { 'X-LLM': 'openai' }),
  };
  const opened = request({ hostname, port, path, method, headers: { ...usual, ...headers } });
  // Which of them there is depends on how far the body has got when the server says no.
  const answer = new Promise<IncomingMessage>((resolve, reject) => {
    opened.once('response', resolve).on('error', reject);
  });
  return { opened, answer };
}

async function send({ body, ...sent }: Sent) {
  const { opened, answer } = open(sent);
  opened.end(body);
  return read(await answer);
}

const read = async (answer: IncomingMessage) => ({
  status: answer.statusCode ?? 0,
  headers: answer.headers,
  body: (await readJson(answer)) as Problem & Partial<Omit<Post, 'status'>>,
});

const deep = '['.repeat(50_000) + ']'.repeat(50_000);
const text = (type: string): OutgoingHttpHeaders => ({ 'Content-Type': type });

type Row = [what: string, sent: Omit<Sent, 'path'>, status: number, code: string];

/** One of each kind: `json-body.test.ts` has the others. */
const rows: Row[] = [
  [
    'a bomb',
    { body: gzipSync(Buffer.alloc(50_000_000)), headers: { 'Content-Encoding': 'gzip' } },
    413,
    'payload_too_large',
  ],
  ['a body over the limit', { body: `{"content":"${'x'.repeat(1_048_576)}"}` }, 413, 'payload_too_large'],
  ['nesting 50,000 deep', { body: `{"x":${deep}}` }, 400, 'invalid_request'],
  ['text', { body: '{}', headers: text('text/plain') }, 415, 'unsupported_media_type'],
  ['nothing', { body: '' }, 400, 'invalid_json'],
  ['a list', { body: '[]' }, 400, 'invalid_request'],
];
const operations = [
  { method: 'POST', path: '/chat' },
  { method: 'POST', path: '/blogs' },
  { method: 'PUT', path: '/blogs/{id}' },
  { method: 'PATCH', path: '/blogs/{id}' },
];

describe.each(operations)('$method $path', ({ method, path }) => {
  it.each(rows)('refuses %s', async (_, sent, status, code) => {
    const answer = await send({ method, path: path.replace('{id}', post.id), ...sent });
    expect(answer.body).toMatchObject({ status, code });
    expect(answer.status).toBe(status);
    expect(answer.headers['content-type']).toMatch(/^application\/problem\+json/);
  });
});

describe.each(['/chat', '/blogs'])('a body that %s does not read to its end', (path) => {
  it('is answered before it ends, and cut off when it does not end', async () => {
    const { opened, answer } = open({ path });
    const cutOff = once(opened, 'close');
    opened.write(Buffer.alloc(2_000_000, ' '));
    expect(await read(await answer)).toMatchObject({ status: 413, body: { code: 'payload_too_large' } });
    const chunk = Buffer.alloc(65_536, ' ');
    let sentBytes = 0;
    const sendMore = () => {
      while (!opened.closed && opened.write(chunk)) sentBytes += chunk.length;
      opened.once('drain', sendMore);
    };
    sendMore();
    await cutOff;
    expect(sentBytes).toBeLessThan(50_000_000);
  });

  it.each([1.5, 4, 12])('is read off, so that the answer is not lost (%d MB)', async (megabytes) => {
    const address = `${deployment.url}${path}`;
    const bytes = Buffer.alloc(megabytes * 1e6, ' ');
    for (const Authorization of [path === '/chat' ? authorization : `Bearer ${blogToken}`, 'Basic x']) {
      const headers = { Authorization, 'Content-Type': 'application/json', 'X-LLM': 'openai' };
      const whole = await fetch(address, { method: 'POST', headers, body: bytes });
      const inChunks = await fetch(address, {
        method: 'POST',
        headers,
        body: new Blob([bytes]).stream(),
        duplex: 'half',
      });
      const status = Authorization === 'Basic x' ? 401 : 413;
      for (const answer of [whole, inChunks]) {
        expect(answer.status).toBe(status);
        expect(await answer.json()).toMatchObject({ status });
      }
    }
  });
});

describe('an answer to a request without a body', () => {
  it('leaves the connection open, also when it is a problem', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const { hostname, port } = new URL(deployment.url);
    const reused: boolean[] = [];
    for (const path of ['/nothing', '/blogs/nothing', '/chat', '/blogs']) {
      const sent = request({ hostname, port, path, agent }).end();
      const [answer] = (await once(sent, 'response')) as [IncomingMessage];
      await once(answer.resume(), 'close');
      reused.push(sent.reusedSocket);
    }
    agent.destroy();
    expect(reused).toEqual([false, true, true, true]);
  });
});

describe('X-LLM-Model', () => {
  it.each(['../../admin', 'a b', 'x'.repeat(257), 'projects/p/locations/l/endpoints/1'])(
    'is refused as %j',
    async (model) => {
      const { status, body } = await deployment.chat({ model });
      const errors = [{ pointer: 'X-LLM-Model', detail: expect.any(String) }];
      expect([status, body]).toEqual([400, expect.objectContaining({ code: 'invalid_request', errors })]);
    },
  );
});

describe('another method', () => {
  it.each(['/chat', '/v1/chat'])('is 405 with Allow on %s', async (path) => {
    for (const method of ['GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
      const { status, headers, body } = await send({ method, path });
      expect([status, headers.allow, body.code]).toEqual([405, 'POST', 'method_not_allowed']);
    }
  });
});

/** The server's answer to bytes that no HTTP client would send. */
async function saidTo(bytes: string): Promise<string> {
  const socket = connect(Number(new URL(deployment.url).port), '127.0.0.1');
  socket.write(bytes);
  return Buffer.concat(await socket.toArray()).toString();
}

describe('a request that is hardly one', () => {
  it.each([
    ['no Host', 'GET /livez HTTP/1.1\r\nConnection: close\r\n\r\n', 400],
    ['an expectation', 'POST /chat HTTP/1.1\r\nHost: x\r\nExpect: foo\r\nConnection: close\r\n\r\n', 401],
    ['no HTTP at all', 'hello\r\n\r\n', 400],
    ['a bad length', 'POST /chat HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n', 400],
    ['headers of 20 kB', `GET /livez HTTP/1.1\r\nHost: x\r\nX-Huge: ${'x'.repeat(20_000)}\r\n\r\n`, 431],
  ])('is answered with a problem: %s', async (_, bytes, status) => {
    const said = await saidTo(bytes);
    expect(said).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(said).toMatch(/content-type: application\/problem\+json/i);
    expect(said).toMatch(/x-request-id: [0-9a-f-]{36}/i);
    expect(said).toContain(`"status":${status}`);
  });
});
