import { createHash } from 'node:crypto';
import { afterAll, describe, expect, it } from 'vitest';
import type { PostFields } from '../../../db/posts/post-creation.js';
import type { PostStore } from '../../../db/posts/post-store.js';
import type { Post } from '../../../shared/contracts/contract.js';
import { userNamed } from '../../support/identities.js';
import { failure, fields, openPostStores, parallel } from '../post-stores.js';

const stores = await openPostStores();
afterAll(() => stores.stop());
const { store } = stores;

const make = async (some?: Partial<PostFields>) => (await store.create(fields(some))).post;
const seen = (post: Post) => store.get(post.id, { drafts: true });
const request = (key: string, body = '{}') => ({
  user: userNamed('ada'),
  key,
  hash: createHash('sha256').update(body).digest(),
});

describe('create', () => {
  it('gives the post as it is read afterwards', async () => {
    const post = await make({ title: 'A first post', tags: ['one', 'two'] });
    expect(post).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7/),
      title: 'A first post',
      content: 'Text',
      author: 'ada',
      tags: ['one', 'two'],
      slug: 'a-first-post',
      status: 'published',
      publishedAt: post.createdAt,
      createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      updatedAt: post.createdAt,
      version: 1,
    });
    expect(await seen(post)).toEqual(post);
  });

  it('leaves a draft unpublished, and to those who may see drafts', async () => {
    const draft = await make({ status: 'draft' });
    expect(draft).toMatchObject({ status: 'draft', publishedAt: null });
    expect(await store.get(draft.id, { drafts: false })).toBeUndefined();
    expect(await seen(draft)).toEqual(draft);
  });

  it.each([
    ['emoji', '👩🏽‍🚀 🇺🇦 🎉'],
    ['right to left', 'שלום ‏مرحبا‎ \u202Eabc'],
    ['combining characters', 'e\u0301 é Z\u0351\u036B\u0343 ﬁ'],
    ['SQL', `'; DROP TABLE posts; -- $1 \\' " %s`],
    ['line ends and blanks', '\r\n\tone\r\n two \n\n  \u00A0 \r'],
    ['array syntax', '{"a",NULL,\\"b\\\\"} , null'],
    ['controls', '\u0001\u001B\u007F\uFEFF\uFFFE'],
  ])('keeps every text byte for byte: %s', async (_, text) => {
    const post = await make({ content: text, title: text, author: text, tags: [text, `${text} `, 'null'] });
    const expected = { content: text, title: text, author: text, tags: [text, `${text} `, 'null'] };
    expect(post).toMatchObject(expected);
    expect(await seen(post)).toMatchObject(expected);
  });

  it('stores the longest text although its words are more than a search vector holds', async () => {
    // 52,428 different words of four characters with four bytes each, and blanks between them.
    const word = (n: number) =>
      String.fromCodePoint(...[n % 64, (n >> 6) % 64, (n >> 12) % 64, 7].map((part) => 0x20000 + part));
    const content = Array.from({ length: 52_429 }, (_, n) => word(n))
      .join(' ')
      .slice(0, 2 * 262_144);
    expect(Array.from(content)).toHaveLength(262_144);
    const post = await make({ content });
    expect((await seen(post))?.content === content).toBe(true);
    const foundBy = async (search: string) =>
      (await store.list({ limit: 2, drafts: false, search })).posts.map(({ id }) => id);
    expect(await foundBy(word(9000))).toEqual([post.id]);
    expect(await foundBy(word(11_000))).toEqual([]);
  });

  it('makes different slugs of one title, also at the same moment', async () => {
    const created = await stores.atOnce(parallel, (some) => some.create(fields({ title: 'The same' })));
    const slugs = created.map(({ post }) => post.slug);
    expect(new Set(slugs).size).toBe(parallel);
    for (const slug of slugs) expect(slug).toMatch(/^the-same(-[0-9a-f]{8})?$/);
    expect(slugs).toContain('the-same');
  });

  it('makes another slug when one is taken that was free a moment ago', async () => {
    const create = (some: PostStore) => some.create(fields({ title: 'Just taken' }));
    const created = await stores.whileTaking('just-taken', () => stores.atOnce(parallel, create));
    for (const { post } of created) expect(post.slug).toBe(`just-taken-${post.id.slice(-8)}`);
  });

  it('refuses a given slug that is taken, and says nothing of the post', async () => {
    await make({ slug: 'mine' });
    const error = await make({ slug: 'mine', content: 'canary' }).catch((cause: unknown) => cause);
    expect(error).toEqual(failure('slug_taken'));
    expect((error as Error).cause).toBeUndefined();
    const tries = await Promise.allSettled(
      Array.from({ length: parallel }, () => make({ slug: 'of-one-alone' })),
    );
    expect(tries.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  });

  it('makes one post of a request that comes several times', async () => {
    const post = fields({ title: 'Once' });
    const answers = await stores.atOnce(10, (some) => some.create(post, request('several')));
    expect(answers.filter(({ replayed }) => !replayed)).toHaveLength(1);
    for (const answer of answers) expect(answer.post).toEqual(answers[0]?.post);
  });

  it('knows a request again whose own post has the slug it asks for', async () => {
    const post = fields({ slug: 'asked-for' });
    const answers = await stores.atOnce(10, (some) => some.create(post, request('with slug')));
    expect(new Set(answers.map((answer) => answer.post.id)).size).toBe(1);
    expect((await store.create(post, request('with slug'))).replayed).toBe(true);
  });

  it('answers a repeat with the post as it is now', async () => {
    const { post } = await store.create(fields(), request('changed since'));
    await store.patch(post.id, { content: 'Changed' });
    const now = await seen(post);
    expect(now?.version).toBe(2);
    expect(await store.create(fields(), request('changed since'))).toEqual({ post: now, replayed: true });
  });

  it('refuses the key of another request, and takes it from another owner', async () => {
    await store.create(fields(), request('used'));
    await expect(store.create(fields(), request('used', '{"other":1}'))).rejects.toEqual(
      failure('idempotency_key_reused'),
    );
    const { replayed } = await store.create(fields(), { ...request('used'), user: userNamed('bob') });
    expect(replayed).toBe(false);
  });

  it('takes a key as new that was of an earlier user of the same name', async () => {
    const { post } = await store.create(fields({ slug: 'earlier' }), request('left behind'));
    const later = {
      ...request('left behind', '{"other":1}'),
      user: { ...userNamed('ada'), createdAt: new Date(Date.now() + 60_000) },
    };
    const answers = await stores.atOnce(1, (some) => some.create(fields({ slug: 'later' }), later));
    expect(answers[0]).toMatchObject({ replayed: false, post: { slug: 'later' } });
    expect(answers[0]?.post.id).not.toBe(post.id);
    expect(await seen(post)).toEqual(post);
    await expect(store.create(fields({ slug: 'earlier' }), request('of nobody'))).rejects.toEqual(
      failure('slug_taken'),
    );
  });
});
