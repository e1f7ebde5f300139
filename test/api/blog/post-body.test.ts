import express from 'express';
import { afterAll, describe, expect, it } from 'vitest';
import { checkPost } from '../../../api/blog/post-body.js';
import { jsonBody } from '../../../api/http/json-body.js';
import { problemHandler } from '../../../api/http/problem.js';
import { postInput, postPatch } from '../../../db/posts/post-rules.js';
import type { Problem } from '../../../shared/contract.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { serve } from '../../support/serve.js';

const logged = createRecordingLog();
const app = express();
const read = jsonBody({ maxBytes: 8_388_608, maxDepth: 32, maxValues: 1_000_000 });
app.put('/', read, checkPost(postInput), (request, response) => void response.json(request.body));
app.patch('/', read, checkPost(postPatch), (request, response) => void response.json(request.body));
app.use(problemHandler(logged.log));
const server = await serve(app);
afterAll(() => server.close());

interface Sent {
  method?: string;
  headers?: Record<string, string>;
  type?: string;
}

async function send(body: unknown, { method = 'PUT', headers = {}, type = 'application/json' }: Sent = {}) {
  const response = await fetch(server.url, {
    method,
    headers: { 'Content-Type': type, ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, body: JSON.parse(text) as unknown, text };
}

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

describe('checkPost', () => {
  it.each([
    ['the content alone', { content }],
    [
      'every field',
      { content, title: 'T', author: 'A', tags: ['a', 'b'], slug: 'a-1-b', status: 'draft' as const },
    ],
    [
      'null in each optional field',
      { content, title: null, author: null, tags: null, slug: null, status: null },
    ],
    ['an empty title and no tags', { content, title: '', tags: [] }],
    ['content of 262,144 characters', { content: 'a'.repeat(262_144) }],
    ['content of 262,144 emoji', { content: emoji(262_144) }],
    ['a title of 300 emoji', { content, title: emoji(300) }],
    ['an author of 200 emoji', { content, author: emoji(200) }],
    [
      '20 tags of 50 emoji',
      { content, tags: Array.from({ length: 20 }, (_, n) => emoji(49) + String.fromCodePoint(0x1f600 + n)) },
    ],
    ['a slug of 100 characters', { content, slug: 'a'.repeat(100) }],
    ['white space, controls and marks around', { content: '\r\n\t text \u0001\u200e', title: ' \u202e' }],
    ['what SQL and HTML could trip over', { content: `'; DROP TABLE posts; --<script>`, title: `\\'"%_$1` }],
  ])('passes on %s as it was sent', async (_, body) => {
    expect((await send(body)).body).toEqual(body);
  });

  it.each([
    ['no content', {}, '/content', 'is required'],
    ['content that is null', { content: null }, '/content', 'must be a string'],
    ['content that is a number', { content: 1 }, '/content', 'must be a string'],
    ['content that is a list', { content: ['a'] }, '/content', 'must be a string'],
    ['empty content', { content: '' }, '/content', 'must not be blank'],
    ['blank content', { content: ' \n\u00a0\u2003' }, '/content', 'must not be blank'],
    ['invisible content', { content: '\u200b\u00ad' }, '/content', 'must not be blank'],
    ['content with NUL', { content: 'a\0' }, '/content', 'must not contain NUL characters'],
    ['content too long', { content: 'a'.repeat(262_145) }, '/content', 'must be at most 262144 characters'],
    [
      'content of too many emoji',
      { content: emoji(262_145) },
      '/content',
      'must be at most 262144 characters',
    ],
    ['a title that is a number', { content, title: 1 }, '/title', 'must be a string'],
    ['a title too long', { content, title: 'a'.repeat(301) }, '/title', 'must be at most 300 characters'],
    ['a title of too many emoji', { content, title: emoji(301) }, '/title', 'must be at most 300 characters'],
    ['a title with NUL', { content, title: '\0' }, '/title', 'must not contain NUL characters'],
    ['an author that is an object', { content, author: {} }, '/author', 'must be a string'],
    ['a blank author', { content, author: ' ' }, '/author', 'must not be blank'],
    ['an author too long', { content, author: 'a'.repeat(201) }, '/author', 'must be at most 200 characters'],
    ['tags that are a text', { content, tags: 'a' }, '/tags', 'must be an array'],
    ['tags that are an object', { content, tags: { 0: 'a' } }, '/tags', 'must be an array'],
    ['too many tags', { content, tags: Array(21).fill('a') }, '/tags', 'must have at most 20 items'],
    ['a tag that is null', { content, tags: ['a', 'b', 'c', null] }, '/tags/3', 'must be a string'],
    ['a blank tag', { content, tags: ['a', ' '] }, '/tags/1', 'must not be blank'],
    ['a tag with NUL', { content, tags: ['a\0b'] }, '/tags/0', 'must not contain NUL characters'],
    ['a tag too long', { content, tags: ['a'.repeat(51)] }, '/tags/0', 'must be at most 50 characters'],
    ['a slug that is a number', { content, slug: 1 }, '/slug', 'must be a string'],
    ['a slug too long', { content, slug: 'a'.repeat(101) }, '/slug', 'must be at most 100 characters'],
    ['another status', { content, status: 'Published' }, '/status', 'must be published or draft'],
    ['a list of statuses', { content, status: ['draft'] }, '/status', 'must be published or draft'],
  ])('refuses %s', async (_, body, pointer, detail) => {
    expect(await errorsOf(body)).toEqual([{ pointer, detail }]);
  });

  it.each(['', 'A', 'ä', 'a_b', '-a', 'a-', 'a--b', 'a b', 'a\n', 'a\0', '../a'])(
    'refuses the slug %j',
    async (slug) => {
      expect(await errorsOf({ content, slug })).toEqual([
        { pointer: '/slug', detail: 'must be lowercase letters, digits and single hyphens' },
      ]);
    },
  );

  it.each(['[]', 'null', '1', '"content"', 'true', '[{"content":"a"}]'])(
    'refuses %s, which is no object',
    async (body) => {
      const expected = [{ pointer: '', detail: 'must be an object' }];
      expect(await errorsOf(body)).toEqual(expected);
      expect(await errorsOf(body, { method: 'PATCH' })).toEqual(expected);
      expect(await errorsOf(body, { headers: strict })).toEqual(expected);
    },
  );

  it('lists all errors at once, and quotes nothing', async () => {
    const { text, body } = await send({ content: 7, title: ['canary'], tags: ['canary\0'], slug: 'CANARY' });
    expect((body as Problem).errors?.map(({ pointer }) => pointer)).toEqual([
      '/content',
      '/title',
      '/tags/0',
      '/slug',
    ]);
    expect(text).not.toMatch(/canary/i);
  });

  it('drops repeated tags and keeps the order of the others', async () => {
    expect((await send({ content, tags: ['b', 'a', 'b', 'A', 'a'] })).body).toEqual({
      content,
      tags: ['b', 'a', 'A'],
    });
  });

  it('refuses half a million tags as one error', async () => {
    const tags = Array(500_000).fill(1);
    expect(await errorsOf({ content, tags })).toEqual([
      { pointer: '/tags', detail: 'must have at most 20 items' },
    ]);
  });

  it('lets a patch leave out everything, but not reset the content', async () => {
    expect((await send({}, { method: 'PATCH' })).body).toEqual({});
    expect((await send({ title: null }, { method: 'PATCH' })).body).toEqual({ title: null });
    expect(await errorsOf({ content: null }, { method: 'PATCH' })).toEqual([
      { pointer: '/content', detail: 'must be a string' },
    ]);
    expect(await errorsOf({ content: '' }, { method: 'PATCH' })).toEqual([
      { pointer: '/content', detail: 'must not be blank' },
    ]);
  });
});

describe('unknown fields', () => {
  const ignoredOf = async (body: unknown) => {
    const sent = await send(body);
    expect(sent.status).toBe(200);
    expect(sent.body).toEqual({ content });
    return sent.headers.get('x-ignored-fields');
  };

  it('are left out and named, read-only ones too', async () => {
    expect(await ignoredOf({ content, id: 1, nested: { a: 1 }, version: 9 })).toBe('id, nested, version');
  });

  it('are named in percent-encoding', async () => {
    expect(await ignoredOf({ content, 'a, b': 1, 'ä\r\nX-Evil: 1': 1, '': 1 })).toBe(
      'a%2C%20b, %C3%A4%0D%0AX-Evil%3A%201, ""',
    );
  });

  it('are cut between two characters when their names are long', async () => {
    const header = (await ignoredOf({ content, [emoji(100)]: 1, ['k'.repeat(1_000_000)]: 1 })) ?? '';
    const [first = '', second] = header.split(', ');
    expect(decodeURIComponent(first)).toBe(`${emoji(5)}...`);
    expect(second).toBe(`${'k'.repeat(60)}...`);
  });

  it('are named up to the twentieth of 100,000', async () => {
    const keys = Array.from({ length: 100_000 }, (_, n) => `key${n}`);
    const header = await ignoredOf({ content, ...Object.fromEntries(keys.map((key) => [key, 1])) });
    expect(header?.split(', ')).toEqual([...keys.slice(0, 20), '...']);
  });

  it('keep prototypes out of reach', async () => {
    const body =
      '{"content":"Text","__proto__":{"title":"evil"},"constructor":{"prototype":{"title":"evil"}}}';
    expect(await ignoredOf(body)).toBe('__proto__, constructor');
    expect(await errorsOf('{"__proto__":{"content":"evil"}}')).toEqual([
      { pointer: '/content', detail: 'is required' },
    ]);
    expect(({} as Record<string, unknown>).title).toBeUndefined();
  });
});

describe('Prefer: handling=strict', () => {
  it('refuses unknown and read-only fields, with what else is wrong', async () => {
    const body = { content: '', 'a/b~c': 1, id: '1', createdAt: 1, ['k'.repeat(99)]: 1 };
    expect(await errorsOf(body, { headers: strict })).toEqual([
      { pointer: '/content', detail: 'must not be blank' },
      { pointer: '/a~1b~0c', detail: 'is not a field of a post' },
      { pointer: '/id', detail: 'is read-only' },
      { pointer: '/createdAt', detail: 'is read-only' },
      { pointer: `/${'k'.repeat(60)}...`, detail: 'is not a field of a post' },
    ]);
  });

  it('lists at most 20 errors of 100,000', async () => {
    const keys = Object.fromEntries(Array.from({ length: 100_000 }, (_, n) => [`key${n}`, n]));
    expect(await errorsOf({ content, ...keys }, { headers: strict })).toHaveLength(20);
  });
});

describe('the media type of a patch', () => {
  it.each([
    'application/merge-patch+json',
    'Application/Merge-Patch+JSON; charset=utf-8',
    'application/json',
  ])('may be %s', async (type) => {
    expect((await send({ title: 'T' }, { method: 'PATCH', type })).body).toEqual({ title: 'T' });
  });

  it('must be supported, and the answer lists which are', async () => {
    const { status, headers } = await send({}, { method: 'PATCH', type: 'application/json-patch+json' });
    expect(status).toBe(415);
    expect(headers.get('accept-patch')).toBe('application/merge-patch+json, application/json');
  });

  it('is nothing for other methods', async () => {
    const { status, headers } = await send({ content }, { type: 'application/merge-patch+json' });
    expect(status).toBe(415);
    expect(headers.get('accept-patch')).toBeNull();
  });
});
