import { once } from 'node:events';
import { Agent, type IncomingMessage, type OutgoingHttpHeaders, request } from 'node:http';
import { connect } from 'node:net';
import { json as readJson } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import createClient from 'openapi-fetch';
import { afterAll, describe, expect, it } from 'vitest';
import { describeApi } from '../../api/app.js';
import { parseConfig } from '../../shared/config/config.js';
import { type Post, type Problem, providerIds } from '../../shared/contracts/contract.js';
import type { paths } from '../generated/api.js';
import { authorization, blogToken, startDeployment } from '../support/deployment.js';
import { profiles } from '../support/profiles.js';

const deployment = await startDeployment({ variables: profiles.plain });
afterAll(deployment.stop);
const baseUrl = deployment.url;
/** Generated clients: the compiler checks every call below against the document. */
const chat = createClient<paths>({ baseUrl, headers: { Authorization: authorization } });
const writer = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${blogToken}` } });
const reader = createClient<paths>({ baseUrl });

/** The post of an answer that has one. */
function given<T>({ data, error }: { data?: T; error?: unknown }): T {
  expect(error).toBeUndefined();
  return data as T;
}
const create = async (content: string) => given(await writer.POST('/blogs', { body: { content } }));

describe('a client that is generated from the OpenAPI document', () => {
  it.each(providerIds)('sends a chat for %s → its reply', async (provider) => {
    const { data, response } = await chat.POST('/chat', {
      params: { header: { 'X-LLM': provider } },
      body: { messages: [{ role: 'system', content: 'Be brief.' }, { content: 'Hello' }] },
    });
    expect(data).toMatchObject({ response: expect.stringContaining('Hello') });
    expect(response.headers.get('X-LLM-Provider')).toBe(provider);
  });

  it('sends a chat that is refused → a problem that it can read', async () => {
    const asked = { params: { header: { 'X-LLM': 'openai' as const } }, body: { messages: [] } };
    const { data, error } = await chat.POST('/chat', asked);
    expect(data).toBeUndefined();
    expect(error?.code).toBe('empty_conversation');
    expect((await reader.POST('/chat', asked)).error?.code).toBe('unauthorized');
  });

  it('writes a post → the same post, which it can read in each representation', async () => {
    const body = { content: '# Hi', title: 'Hi', tags: ['a'], status: 'published' as const, slug: null };
    const params = { header: { 'Idempotency-Key': 'client-1', Prefer: 'handling=strict' } };
    const { data: post, response } = await writer.POST('/blogs', { params, body });
    expect(response.status).toBe(201);
    expect(post).toMatchObject({ content: '# Hi', title: 'Hi', tags: ['a'], version: 1 });
    const path = { id: post?.id ?? '' };
    expect(given(await reader.GET('/blogs/{id}', { params: { path } }))).toEqual(post);
    const header = { 'If-None-Match': response.headers.get('ETag') ?? '' };
    const again = await reader.GET('/blogs/{id}', { params: { path, header } });
    expect(again.response.status).toBe(304);
    const accept = { Accept: 'text/markdown' };
    const markdown = await reader.GET('/blogs/{id}', { params: { path }, headers: accept, parseAs: 'text' });
    expect(markdown.data).toBe('# Hi');
  });

  it('asks for posts page by page → all of them, once', async () => {
    const written = [await create('one'), await create('two')].reverse();
    const query = { limit: 1, envelope: true, author: 'tester', q: 'one or two' };
    const first = given(await reader.GET('/blogs', { params: { query } }));
    if (Array.isArray(first)) throw new TypeError('no envelope');
    expect(first.data).toEqual(written.slice(0, 1));
    const cursor = first.next ?? '';
    const second = given(await reader.GET('/blogs', { params: { query: { ...query, cursor } } }));
    expect(second).toEqual({ data: written.slice(1), next: null });
    expect(given(await reader.GET('/blogs', { params: { query: { limit: 2 } } }))).toEqual(written);
    const refused = await reader.GET('/blogs', { params: { query: { limit: 0 } } });
    expect(refused.error?.errors).toEqual([{ pointer: 'limit', detail: expect.any(String) }]);
  });

  it('replaces, patches and deletes a post → it is as it was last written, and then gone', async () => {
    const { id, content } = await create('first');
    const path = { id };
    const put = await writer.PUT('/blogs/{id}', { params: { path }, body: { content, title: 'Second' } });
    expect(given(put).title).toBe('Second');
    const header = { 'If-Match': put.response.headers.get('ETag') ?? '' };
    const patch = { params: { path, header }, body: { title: null } };
    const patched = given(await writer.PATCH('/blogs/{id}', patch));
    expect(patched).toMatchObject({ content, title: null, version: 3 });
    expect((await writer.PATCH('/blogs/{id}', patch)).error?.code).toBe('precondition_failed');
    const headers = { 'Content-Type': 'application/merge-patch+json' };
    const merge = { params: { path }, body: { tags: ['b'] }, headers };
    const merged = await writer.PATCH('/blogs/{id}', merge);
    expect(given(merged).tags).toEqual(['b']);
    expect((await writer.DELETE('/blogs/{id}', { params: { path } })).response.status).toBe(204);
    const gone = await reader.GET('/blogs/{id}', { params: { path } });
    expect(gone.error?.code).toBe('not_found');
    const unknown = await reader.POST('/blogs', { body: { content } });
    expect(unknown.error?.code).toBe('unauthorized');
  });

  it('has the types of the document → which is the one that this server serves', async () => {
    const served = (await (await fetch(`${deployment.url}/openapi.json`)).json()) as Record<string, unknown>;
    const { paths, components } = JSON.parse(JSON.stringify(describeApi(parseConfig({}, 'config'))));
    expect(served).toMatchObject({ paths, components });
  });
});

interface Sent {
  method?: string;
  path: string;
  headers?: OutgoingHttpHeaders;
  body?: string | Uint8Array;
}

const { hostname, port } = new URL(deployment.url);

function open({ method = 'POST', path, headers = {} }: Omit<Sent, 'body'>) {
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

const bomb = gzipSync(Buffer.alloc(50_000_000));
const deep = '['.repeat(50_000) + ']'.repeat(50_000);

type Row = [what: string, sent: Omit<Sent, 'path'>, status: number, code: string];

/** One of each kind: `json-body.test.ts` has the others. */
const rows: Row[] = [
  ['a bomb', { body: bomb, headers: { 'Content-Encoding': 'gzip' } }, 413, 'payload_too_large'],
  ['a body over the limit', { body: `{"content":"${'x'.repeat(1_048_576)}"}` }, 413, 'payload_too_large'],
  ['nesting 50,000 deep', { body: `{"x":${deep}}` }, 400, 'invalid_request'],
  ['text', { body: '{}', headers: { 'Content-Type': 'text/plain' } }, 415, 'unsupported_media_type'],
  ['nothing', { body: '' }, 400, 'invalid_json'],
  ['a list', { body: '[]' }, 400, 'invalid_request'],
];
const operations = [
  { method: 'POST', path: '/chat' },
  { method: 'POST', path: '/blogs' },
  { method: 'PUT', path: '/blogs/{id}' },
  { method: 'PATCH', path: '/blogs/{id}' },
];

describe('a body that cannot be taken', () => {
  it.each(operations)('comes with $method $path → a problem that says why', async ({ method, path }) => {
    const { id } = given(await writer.POST('/blogs', { body: { content: 'x' } }));
    for (const [what, sent, status, code] of rows) {
      const answer = await send({ method, path: path.replace('{id}', id), ...sent });
      expect(answer, what).toMatchObject({ status, body: { status, code } });
      expect(answer.headers['content-type'], what).toMatch(/^application\/problem\+json/);
    }
  });
});

describe.each(['/chat', '/blogs'])('a body that %s does not read to its end', (path) => {
  it('does not end → it is answered before its end, and then cut off', async () => {
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

  it.each([1.5, 4, 12])('has %d MB → it is read off, and the answer arrives', async (megabytes) => {
    const address = `${deployment.url}${path}`;
    const bytes = Buffer.alloc(megabytes * 1e6, ' ');
    for (const Authorization of [path === '/chat' ? authorization : `Bearer ${blogToken}`, 'Basic x']) {
      const headers = { Authorization, 'Content-Type': 'application/json', 'X-LLM': 'openai' };
      const status = Authorization === 'Basic x' ? 401 : 413;
      for (const body of [bytes, new Blob([bytes]).stream()]) {
        const answer = await fetch(address, { method: 'POST', headers, body, duplex: 'half' });
        expect(answer.status).toBe(status);
        expect(await answer.json()).toMatchObject({ status });
      }
    }
  });
});

describe('a request without a body', () => {
  it('is refused → its connection stays open', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
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

describe('a model that has no such name', () => {
  it.each(['../../admin', 'a b', 'x'.repeat(257), 'projects/p/locations/l/endpoints/1'])(
    'is asked for as %j → 400',
    async (model) => {
      const { status, body } = await deployment.chat({ model });
      const errors = [{ pointer: 'X-LLM-Model', detail: expect.any(String) }];
      expect([status, body]).toEqual([400, expect.objectContaining({ code: 'invalid_request', errors })]);
    },
  );
});

/** The server's answer to bytes that no HTTP client would send. */
async function saidTo(bytes: string): Promise<string> {
  const socket = connect(Number(port), '127.0.0.1');
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
  ])('has %s → a problem', async (_, bytes, status) => {
    const said = await saidTo(bytes);
    expect(said).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(said).toMatch(/content-type: application\/problem\+json/i);
    expect(said).toMatch(/x-request-id: [0-9a-f-]{36}/i);
    expect(said).toContain(`"status":${status}`);
  });
});
