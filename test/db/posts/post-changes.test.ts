import { afterAll, describe, expect, it } from 'vitest';
import type { Change, PostChanges } from '../../../db/posts/post-changes.js';
import type { PostFields } from '../../../db/posts/post-creation.js';
import type { PostStore } from '../../../db/posts/post-store.js';
import type { Post } from '../../../shared/contracts/contract.js';
import { failure, fields, openPostStores, parallel } from '../post-stores.js';

const stores = await openPostStores();
afterAll(() => stores.stop());
const { store, otherStore } = stores;

const make = async (some?: Partial<PostFields>) => (await store.create(fields(some))).post;
const seen = (post: Post) => store.get(post.id, { drafts: true });
const changed = async (change: Promise<Change>): Promise<Post> => {
  const result = await change;
  if (result.kind !== 'changed') throw new Error(`the post is ${result.kind}`);
  return result.post;
};
const kinds = (changes: { kind: string }[]) => changes.map(({ kind }) => kind).sort();
const unknownId = '019aa1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b';

describe('replace', () => {
  it('a whole post -> sets every field, raises the version and keeps when it was created', async () => {
    const before = await make({ title: 'Old', tags: ['old'], slug: 'old-one' });
    const after = fields({ content: 'New text', author: 'bob', title: 'New', tags: ['new'] });
    const post = await changed(store.replace(before.id, after));
    expect(post).toEqual({ ...before, ...after, slug: 'new', version: 2, updatedAt: post.updatedAt });
    expect(post.updatedAt >= before.updatedAt).toBe(true);
    expect(await seen(post)).toEqual(post);
  });

  it('a title that gives the same slug -> keeps that', async () => {
    const [first, second] = [await make({ title: 'Twice' }), await make({ title: 'Twice' })];
    expect(first.slug).toBe('twice');
    expect(second.slug).toBe(`twice-${second.id.slice(-8)}`);
    for (const { id, slug } of [first, second]) {
      const same = await changed(store.replace(id, fields({ title: 'Twice!', content: 'New' })));
      expect(same.slug).toBe(slug);
    }
    await store.remove(first.id);
    const still = await changed(store.replace(second.id, fields({ title: 'Twice' })));
    expect(still.slug).toBe(second.slug);
  });

  it('a slug that is taken and was free a moment ago -> makes another', async () => {
    const drafts = await stores.atOnce(parallel, async (some) => (await some.create(fields())).post);
    const replaced = await stores.whileTaking('all-alike', () =>
      Promise.all(drafts.map(({ id }) => changed(store.replace(id, fields({ title: 'All alike' }))))),
    );
    for (const { id, slug } of replaced) expect(slug).toBe(`all-alike-${id.slice(-8)}`);
  });

  it('a given slug of another post -> refused, and nothing changes; its own -> taken', async () => {
    await make({ slug: 'of-another' });
    const post = await make({ slug: 'its-own' });
    await expect(store.replace(post.id, fields({ slug: 'of-another' }))).rejects.toEqual(
      failure('slug_taken'),
    );
    expect(await seen(post)).toEqual(post);
    expect((await changed(store.replace(post.id, fields({ slug: 'its-own' })))).slug).toBe('its-own');
  });

  it('another status -> keeps when the post was first published', async () => {
    const draft = await make({ status: 'draft' });
    const published = await changed(store.replace(draft.id, fields()));
    expect(published.publishedAt).toBe(published.updatedAt);
    const hidden = await changed(store.replace(draft.id, fields({ status: 'draft' })));
    const again = await changed(store.replace(draft.id, fields()));
    expect([hidden.publishedAt, again.publishedAt]).toEqual(Array(2).fill(published.publishedAt));
  });
});

describe('patch', () => {
  it.each<PostChanges>([
    { content: 'Changed' },
    { title: 'Another title' },
    { title: null },
    { author: 'bob' },
    { tags: ['x'] },
    { tags: [] },
    { slug: 'quite-another' },
    { status: 'draft' },
  ])('%j -> changes nothing else', async (changes) => {
    const before = await make({ title: `Before ${JSON.stringify(changes)}`, tags: ['a', 'b'] });
    const post = await changed(store.patch(before.id, changes));
    expect(post).toEqual({ ...before, ...changes, version: 2, updatedAt: post.updatedAt });
    expect(await seen(post)).toEqual(post);
  });

  it('no slug -> makes it from the title again', async () => {
    const post = await make({ title: 'Made again', slug: 'given' });
    expect((await changed(store.patch(post.id, { slug: null }))).slug).toBe('made-again');
    const renamed = await changed(store.patch(post.id, { slug: null, title: 'And again' }));
    expect(renamed.slug).toBe('and-again');
    const bare = await changed(store.patch(post.id, { slug: null, title: null }));
    expect(bare.slug).toBe(`post-${post.id.slice(-8)}`);
  });

  it('no slug, while others change the title -> makes it of the title that the post has in the end', async () => {
    const post = await make({ title: 'Title 0' });
    const renamings = Array.from({ length: 10 }, (_, n) =>
      otherStore.patch(post.id, { title: `Title ${n}` }),
    );
    await Promise.all([...renamings, ...renamings.map(() => store.patch(post.id, { slug: null }))]);
    const { title, slug } = await changed(store.patch(post.id, { slug: null }));
    expect(slug).toBe(title?.replace('Title ', 'title-'));
    expect((await seen(post))?.version).toBe(1 + 10 + 10 + 1);
  });

  it('no changes -> no new version', async () => {
    const post = await make();
    expect(await store.patch(post.id, {})).toEqual({ kind: 'changed', post });
    expect(await store.patch(unknownId, {})).toEqual({ kind: 'missing' });
    const { id, version, updatedAt } = post;
    expect(await store.patch(id, {}, { expected: [{ version: 2, updatedAt }] })).toEqual({
      kind: 'stale',
      current: { id, version, updatedAt },
    });
  });
});

describe('remove', () => {
  it('many at once -> removes once', async () => {
    const post = await make();
    const removals = await stores.atOnce(parallel, (some) => some.remove(post.id));
    expect(kinds(removals)).toEqual([...Array(parallel - 1).fill('missing'), 'removed']);
    expect(await seen(post)).toBeUndefined();
  });
});

describe('an expected version', () => {
  const writes: [string, (some: PostStore, post: Post) => Promise<{ kind: string }>][] = [
    ['replace', (some, post) => some.replace(post.id, fields({ content: 'New' }), { expected: [post] })],
    ['patch', (some, post) => some.patch(post.id, { content: 'New' }, { expected: [post] })],
    ['patch of the slug', (some, post) => some.patch(post.id, { slug: null }, { expected: [post] })],
  ];

  it.each(writes)('of several writes at once -> one happens: %s', async (_, write) => {
    const post = await make();
    const changes = await stores.atOnce(parallel, (some) => write(some, post));
    expect(kinds(changes)).toEqual(['changed', ...Array(parallel - 1).fill('stale')]);
    expect((await seen(post))?.version).toBe(2);
    const stale = changes.find(({ kind }) => kind === 'stale');
    expect(stale).toMatchObject({ current: { id: post.id, version: 2 } });
  });

  it('that is one of several -> has to fit in version and time', async () => {
    const { id, version, updatedAt } = await make();
    const otherTime = new Date(Date.parse(updatedAt) + 1).toISOString();
    const current = { version, updatedAt };
    const wrong = [
      { ...current, version: 9 },
      { ...current, updatedAt: otherTime },
    ];
    const stale = { kind: 'stale', current: { id, version, updatedAt } };
    expect(await store.patch(id, { content: 'New' }, { expected: wrong })).toEqual(stale);
    expect(await store.patch(id, { content: 'New' }, { expected: [] })).toEqual(stale);
    expect(await store.remove(id, { expected: wrong })).toEqual(stale);
    const right = await store.replace(id, fields(), { expected: [...wrong, current] });
    expect(right).toMatchObject({ kind: 'changed' });
  });

  it('of a post that is not there, or none is expected -> missing, and nothing is created', async () => {
    const condition = { expected: [{ version: 1, updatedAt: new Date().toISOString() }] };
    for (const change of [
      store.replace(unknownId, fields()),
      store.replace(unknownId, fields(), condition),
      store.patch(unknownId, { content: 'New' }, condition),
      store.patch(unknownId, { slug: null }, condition),
      store.remove(unknownId, condition),
    ])
      expect(await change).toEqual({ kind: 'missing' });
    expect(await store.get(unknownId, { drafts: true })).toBeUndefined();
  });
});
