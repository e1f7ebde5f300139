import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { Agent, type IncomingMessage, type OutgoingHttpHeaders, request } from 'node:http';
import { json as readJson } from 'node:stream/consumers';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Post, type Problem, providerIds } from '../../shared/contract.js';
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

const zeros = Buffer.alloc(200_000_000);
const bombs: [string, Uint8Array][] = [
  ['gzip', gzipSync(zeros)],
  ['deflate', deflateSync(zeros)],
  ['br', brotliCompressSync(zeros, { params: {} })],
];
const keys = (count: number) =>
  Array.from({ length: count }, (_, place) => `"${place.toString(36)}":0`).join();
const manyKeys = keys(15_000);
const deep = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
const text = (type: string): OutgoingHttpHeaders => ({ 'Content-Type': type });

type Row = [what: string, sent: Omit<Sent, 'path'>, status: number, code?: string];

/** What no operation with a body takes. */
const refused: Row[] = [
  ...bombs.map(
    ([encoding, body]): Row => [
      `a bomb in ${encoding}`,
      { body, headers: { 'Content-Encoding': encoding } },
      413,
      'payload_too_large',
    ],
  ),
  ['a body over the limit', { body: `{"content":"${'x'.repeat(1_048_576)}"}` }, 413, 'payload_too_large'],
  ['broken gzip', { body: gzipSync('{}').subarray(0, 9), headers: { 'Content-Encoding': 'gzip' } }, 400],
  ['gzip that is none', { body: '{}', headers: { 'Content-Encoding': 'gzip' } }, 400, 'invalid_json'],
  ['gzip in gzip', { body: '{}', headers: { 'Content-Encoding': 'gzip, gzip' } }, 415],
  ['nesting 50,000 deep', { body: deep(50_000) }, 400, 'invalid_request'],
  ['nesting 50,000 deep in a field', { body: `{"x":${deep(50_000)}}` }, 400, 'invalid_request'],
  ['nesting that is not closed', { body: '['.repeat(500_000) }, 400, 'invalid_request'],
  ['text', { body: '{}', headers: text('text/plain') }, 415, 'unsupported_media_type'],
  ['a form', { body: 'content=x', headers: text('application/x-www-form-urlencoded') }, 415],
  ['a form in parts', { body: '--x--', headers: text('multipart/form-data; boundary=x') }, 415],
  ['JSON in UTF-16', { body: '{}', headers: text('application/json; charset=utf-16') }, 415],
  ['no type', { body: '{}', headers: text('') }, 415, 'unsupported_media_type'],
  ['nothing', { body: '' }, 400, 'invalid_json'],
  ['white space', { body: ' \n' }, 400, 'invalid_json'],
  ['a byte order mark', { body: '\uFEFF{"content":"x"}' }, 400, 'invalid_json'],
  ['two values', { body: '{}{}' }, 400, 'invalid_json'],
  ['a list', { body: '[]' }, 400, 'invalid_request'],
  ['null', { body: 'null' }, 400, 'invalid_request'],
  ['a number past all bounds', { body: '1e999' }, 400, 'invalid_request'],
];
/** What would be missing in a whole post and in a conversation. */
const incomplete: Row[] = [
  ['15,000 keys', { body: `{${manyKeys}}` }, 400, 'invalid_request'],
  ['100,000 keys', { body: `{"content":"x","messages":[],${keys(100_000)}}` }, 400, 'invalid_request'],
  [
    'what is only in __proto__',
    { body: '{"__proto__":{"content":"x","messages":[{"content":"x"}]}}' },
    400,
    'invalid_request',
  ],
];
const operations = [
  { method: 'POST', path: '/chat', rows: [...refused, ...incomplete] },
  { method: 'POST', path: '/blogs', rows: [...refused, ...incomplete] },
  { method: 'PUT', path: '/blogs/{id}', rows: [...refused, ...incomplete] },
  { method: 'PATCH', path: '/blogs/{id}', rows: refused },
];

describe.each(operations)('$method $path', ({ method, path, rows }) => {
  it.each(rows)('refuses %s', async (_, sent, status, code) => {
    const answer = await send({ method, path: path.replace('{id}', post.id), ...sent });
    expect(answer.body).toMatchObject({ status, ...(code && { code }) });
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

describe('a post with 15,000 unknown fields and a __proto__', () => {
  it('is stored without them, and the first of them are named', async () => {
    const body = `{"content":"x",${manyKeys},"__proto__":{"title":"polluted"}}`;
    const { status, headers, body: created } = await send({ path: '/blogs', body });
    expect(status).toBe(201);
    expect(created).toMatchObject({ content: 'x', title: null, version: 1 });
    expect(String(headers['x-ignored-fields']).split(', ')).toHaveLength(21);
    const next = await send({ path: '/blogs', body: '{"content":"y","__proto__":{"title":"polluted"}}' });
    expect(next.body).toMatchObject({ content: 'y', title: null });
    expect(next.headers['x-ignored-fields']).toBe('__proto__');
  });
});

describe('a conversation with 15,000 unknown fields and a __proto__', () => {
  it('is answered as if they were not there', async () => {
    const body = `{"messages":[{"content":"x","__proto__":{"role":"odd"}}],${manyKeys},"__proto__":{"messages":0}}`;
    const { status, body: answered } = await send({ path: '/chat', body });
    expect(status).toBe(200);
    expect(Object.keys(answered)).toEqual(['response']);
  });
});

describe('the provider of a chat', () => {
  const body = '{"messages":[{"content":"x"}]}';
  const odd: [string, string[] | undefined][] = [
    ['missing', undefined],
    ['sent twice', ['openai', 'openai']],
    ['sent twice with different values', ['openai', 'anthropic']],
    ['differently cased', ['OpenAI']],
    ['in quotes', ['"openai"']],
    ['between no-break spaces', ['\u00a0openai\u00a0']],
    ['followed by a parameter', ['openai;q=1']],
    ['a property of every object', ['__proto__']],
    ['a method of every object', ['toString']],
  ];
  it.each(odd)('is unknown when the header is %s', async (_, values) => {
    const { opened, answer } = open({ path: '/chat' });
    opened.removeHeader('X-LLM');
    if (values) opened.setHeader('X-LLM', values);
    opened.end(body);
    const { status, body: problem } = await read(await answer);
    expect({ status, code: problem.code }).toEqual({ status: 400, code: 'unknown_provider' });
    for (const id of providerIds) expect(problem.detail).toContain(id);
  });

  it('may have spaces around it, which are no part of a header (RFC 9110, 5.5)', async () => {
    expect((await send({ path: '/chat', headers: { 'X-LLM': ' openai ' }, body })).status).toBe(200);
  });
});

describe('the memory of the server', () => {
  const residentMb = () =>
    Number(execFileSync('ps', ['-o', 'rss=', '-p', String(deployment.api.pid)], { encoding: 'utf8' })) / 1024;
  const large = [
    ...bombs.map(([encoding, body]) => ({ body, headers: { 'Content-Encoding': encoding } })),
    { body: `{${keys(100_000)}}` },
    { body: deep(50_000) },
    { body: `{"content":"${'x'.repeat(1_048_576)}"}` },
  ];

  it('stays what it was, however many bombs and large bodies there are', async () => {
    const attack = async () => {
      const paths = ['/chat', '/blogs'];
      const sent = large.flatMap((body) => paths.map((path) => send({ path, ...body })));
      for (const { status } of await Promise.all(sent)) expect([400, 413]).toContain(status);
      return residentMb();
    };
    for (let round = 0; round < 3; round++) await attack();
    const before = residentMb();
    const during: number[] = [];
    for (let round = 0; round < 6; round++) during.push(await attack());
    expect(Math.max(...during) - before).toBeLessThan(64);
    expect((await deployment.chat({})).status).toBe(200);
  });
});
