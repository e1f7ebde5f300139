import { afterAll, describe, expect, it } from 'vitest';
import type { z } from 'zod';
import { checkPost } from '../../../api/blog/post-body.js';
import { jsonBody } from '../../../api/http/json-body.js';
import { postInput, postPatch, toPostChanges, toPostFields } from '../../../db/posts/post-rules.js';
import type { Problem } from '../../../shared/contracts/contract.js';
import { serveRoutes } from '../../support/app.js';
import { createClient, type Sent } from '../../support/client.js';
import { createRecordingLog } from '../../support/recording-log.js';

const logged = createRecordingLog();
const read = jsonBody({ maxBytes: 8_388_608, maxDepth: 32, maxValues: 1_000_000 });
const server = await serveRoutes((app) => {
  app.put('/', read, checkPost(postInput), (request, response) => void response.json(request.body));
  app.patch('/', read, checkPost(postPatch), (request, response) => void response.json(request.body));
}, logged.log);
afterAll(server.close);

const client = createClient(server.url);
const send = (body: unknown, sent: Sent = {}) => client<unknown>({ method: 'PUT', body, ...sent });

async function errorsOf(body: unknown, sent: Sent = {}) {
  const { status, body: problem } = await send(body, sent);
  expect(status).toBe(400);
  const { code, errors } = problem as Problem;
  expect(code).toBe('invalid_request');
  return errors;
}

const content = 'Text';
const strict = { Prefer: 'handling=strict' };
const emoji = (count: number) => '🎉'.repeat(count);

describe('a post', () => {
  it.each([
    ['the content alone', { content }],
    ['every field', { content, title: 'T', author: 'A', tags: ['a', 'b'], slug: 'a-1-b', status: 'draft' }],
    ['null in all but the content', { content, title: null, author: null, tags: null, slug: null }],
    ['an empty title and no tags', { content, title: '', tags: [], status: null }],
    ['20 tags', { content, tags: Array.from({ length: 20 }, (_, n) => `tag ${n}`) }],
    ['a slug of 100 characters', { content, slug: 'a'.repeat(100) }],
    ['a slug in other letters', { content, slug: '日本語-データ-हिन्दी' }],
    ['white space, controls and marks in the content', { content: '\r\n\t text \u0001\u200e' }],
    [
      'shaping characters in a line',
      { content, title: 'می\u200cخواهم ❤\ufe0f', tags: ['👩\u200d👧', '葛\u{e0100}'] },
    ],
    ['what SQL and HTML could trip over', { content: `'; DROP TABLE posts; --<script>`, title: `\\'"%_$1` }],
  ])('has %s -> is passed on as it was sent', async (_, body) => {
    expect((await send(body)).body).toEqual(body);
  });

  it.each<[field: string, max: number, mayBeBlank: boolean, bodyOf: (value: unknown) => object]>([
    ['/content', 262_144, false, (value) => ({ content: value })],
    ['/title', 300, true, (value) => ({ content, title: value })],
    ['/author', 200, false, (value) => ({ content, author: value })],
    ['/tags/1', 50, false, (value) => ({ content, tags: ['a', value] })],
  ])('has at %s a text of %i characters at most -> no other', async (pointer, max, mayBeBlank, bodyOf) => {
    expect((await send(bodyOf(emoji(max)))).body).toEqual(bodyOf(emoji(max)));
    const wrong = [
      [emoji(max + 1), `must be at most ${max} characters`],
      ['a\0b', `must not contain ${pointer === '/content' ? 'NUL' : 'line ends or invisible'} characters`],
      ...[1, ['a'], {}].map((value) => [value, 'must be a string'] as const),
      ...(mayBeBlank
        ? []
        : ['', ' \n\u00a0\u2003', '\u200b\u00ad'].map((text) => [text, 'must not be blank'] as const)),
    ] as const;
    for (const [value, detail] of wrong) expect(await errorsOf(bodyOf(value))).toEqual([{ pointer, detail }]);
  });

  const slugRule = 'must be lowercase letters, digits and single hyphens';
  it.each<[body: object, pointer: string, detail: string]>([
    [{}, '/content', 'is required'],
    [{ content: null }, '/content', 'must be a string'],
    [{ content, tags: 'a' }, '/tags', 'must be an array'],
    [{ content, tags: { 0: 'a' } }, '/tags', 'must be an array'],
    [{ content, tags: Array(21).fill('a') }, '/tags', 'must have at most 20 items'],
    [{ content, tags: ['a', 'b', 'c', null] }, '/tags/3', 'must be a string'],
    [{ content, slug: 1 }, '/slug', 'must be a string'],
    [{ content, slug: 'a'.repeat(101) }, '/slug', 'must be at most 100 characters'],
    ...[
      ...['', 'A', 'Ä', 'A\u0308', '\u0e31a', 'a_b', '-a', 'a-', 'a--b', 'a b', 'a\n', 'a\0', '../a', 'a。'],
    ].map((slug): [object, string, string] => [{ content, slug }, '/slug', slugRule]),
    [{ content, slug: '字'.repeat(67) }, '/slug', 'must be at most 200 bytes in UTF-8'],
    [{ content, status: 'Published' }, '/status', 'must be published or draft'],
    [{ content, status: ['draft'] }, '/status', 'must be published or draft'],
  ])('is %j -> is refused at %s', async (body, pointer, detail) => {
    expect(await errorsOf(body)).toEqual([{ pointer, detail }]);
  });

  it.each(['[]', 'null', '1', '"content"', '[{"content":"a"}]'])(
    'is %s, no object -> is refused',
    async (body) => {
      const expected = [{ pointer: '', detail: 'must be an object' }];
      for (const sent of [{}, { method: 'PATCH' }, { headers: strict }])
        expect(await errorsOf(body, sent)).toEqual(expected);
    },
  );

  it('has several errors -> all are listed, and nothing of it is quoted', async () => {
    const { text, body } = await send({ content: 7, title: ['canary'], tags: ['can\0ary'], slug: 'CANARY' });
    const pointers = (body as Problem).errors?.map(({ pointer }) => pointer);
    expect(pointers).toEqual(['/content', '/title', '/tags/0', '/slug']);
    expect(text).not.toMatch(/canary/i);
  });

  it.each(['\r\n', ...'\n\t\u2028\u0085\u200b\u00ad\u202e\ufeff\u2060\u3164'])(
    'has %j within a line -> is refused there, but not at its ends',
    async (mark) => {
      const detail = 'must not contain line ends or invisible characters';
      const lines = (text: string) => ({ content, title: text, author: text, tags: ['a', text] });
      const pointers = ['/title', '/author', '/tags/1'];
      expect(await errorsOf(lines(`b${mark}c`))).toEqual(pointers.map((pointer) => ({ pointer, detail })));
      for (const text of [`${mark} b c`, `b c ${mark}`, `${mark}\u00a0b c\u200d${mark}`])
        expect((await send(lines(text))).body).toEqual(lines('b c'));
    },
  );

  it('has tags that are equal but for their ends -> has each once, in the order of the first ones', async () => {
    const tags = [' apples ', 'a', 'a ', '\u200bapples', 'plums\n', 'A', 'a'];
    expect((await send({ content, tags })).body).toEqual({ content, tags: ['apples', 'a', 'plums', 'A'] });
  });

  it.each(['', '  ', '\u200b\n', '\u200d', null])('has the title %j -> has none', async (title) => {
    const input = (await send({ content, title })).body as z.output<typeof postInput>;
    expect(toPostFields(input, 'blog').title).toBeNull();
    const patch = (await send({ title }, { method: 'PATCH' })).body as z.output<typeof postPatch>;
    expect(toPostChanges(patch, 'blog')).toEqual({ title: null });
  });

  it('has a hundred thousand tags -> one error', async () => {
    const error = { pointer: '/tags', detail: 'must have at most 20 items' };
    expect(await errorsOf({ content, tags: Array(100_000).fill(1) })).toEqual([error]);
  });
});

describe('a patch', () => {
  it('leaves fields out, or resets them -> is passed on; the content cannot be reset', async () => {
    for (const body of [{}, { title: null }])
      expect((await send(body, { method: 'PATCH' })).body).toEqual(body);
    for (const [value, detail] of [
      [null, 'must be a string'],
      ['', 'must not be blank'],
    ])
      expect(await errorsOf({ content: value }, { method: 'PATCH' })).toEqual([
        { pointer: '/content', detail },
      ]);
  });

  it.each([
    'application/merge-patch+json',
    'Application/Merge-Patch+JSON; charset=utf-8',
    'application/json',
  ])('is sent as %s -> is taken', async (type) => {
    expect((await send({ title: 'T' }, { method: 'PATCH', headers: { 'Content-Type': type } })).body).toEqual(
      { title: 'T' },
    );
  });

  it.each([
    ['PATCH', 'application/json-patch+json', 'application/merge-patch+json, application/json'],
    ['PUT', 'application/merge-patch+json', null],
  ])('and %s as %s -> 415, with the types that a patch may have', async (method, type, accepted) => {
    const { status, headers } = await send({ content }, { method, headers: { 'Content-Type': type } });
    expect([status, headers.get('accept-patch')]).toEqual([415, accepted]);
  });
});

describe('unknown fields', () => {
  const keys = Array.from({ length: 1000 }, (_, n) => `key${n}`);
  const ofKeys = Object.fromEntries(keys.map((key) => [key, 1]));

  it.each<[string, object | string, string]>([
    ['read-only ones', { content, id: 1, nested: { a: 1 }, version: 9 }, 'id, nested, version'],
    [
      'odd characters',
      { content, 'a, b': 1, 'ä\r\nX-Evil: 1': 1, '': 1 },
      'a%2C%20b, %C3%A4%0D%0AX-Evil%3A%201, ""',
    ],
    [
      'long names',
      { content, [emoji(100)]: 1, ['k'.repeat(1_000_000)]: 1 },
      `${encodeURIComponent(emoji(5))}..., ${'k'.repeat(60)}...`,
    ],
    ['many', { content, ...ofKeys }, `${keys.slice(0, 20).join(', ')}, ...`],
    [
      'what leads to prototypes',
      '{"content":"Text","__proto__":{"title":"evil"},"constructor":{"prototype":{"title":"evil"}}}',
      '__proto__, constructor',
    ],
  ])('are %s -> are left out and named, in percent-encoding and not too long', async (_, body, named) => {
    const sent = await send(body);
    expect([sent.status, sent.body, sent.headers.get('x-ignored-fields')]).toEqual([200, { content }, named]);
    expect(({} as Record<string, unknown>).title).toBeUndefined();
  });

  it('hold the content in a prototype -> there is none', async () => {
    const error = { pointer: '/content', detail: 'is required' };
    expect(await errorsOf('{"__proto__":{"content":"evil"}}')).toEqual([error]);
  });

  it('are sent under handling=strict -> are refused with what else is wrong, 20 at most', async () => {
    const body = { content: '', 'a/b~c': 1, id: '1', createdAt: 1, ['k'.repeat(99)]: 1 };
    expect(await errorsOf(body, { headers: strict })).toEqual([
      { pointer: '/content', detail: 'must not be blank' },
      { pointer: '/a~1b~0c', detail: 'is not a field of a post' },
      { pointer: '/id', detail: 'is read-only' },
      { pointer: '/createdAt', detail: 'is read-only' },
      { pointer: `/${'k'.repeat(60)}...`, detail: 'is not a field of a post' },
    ]);
    expect(await errorsOf({ content, ...ofKeys }, { headers: strict })).toHaveLength(20);
  });
});
