import { afterAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { sql } from '../../../db/database/drizzle.js';
import { PostStore } from '../../../db/posts/post-store.js';
import { type ImportedPost, PostTransfer } from '../../../db/posts/post-transfer.js';
import type { Post } from '../../../shared/contracts/contract.js';
import { openTestDatabase } from '../../support/database.js';
import { patience } from '../../support/patience.js';

const { database, stop } = await openTestDatabase({ poolSize: 8 });
afterAll(stop);
beforeEach(() => database.run((db) => db.execute(sql`truncate posts cascade`)));

const transfer = new PostTransfer(database);
const posts = new PostStore(database);

const id = '01890a5d-ac96-774b-bcce-b302099a8057';
const otherId = '01890a5d-ac96-774b-bcce-b302099a8058';
const past = '2020-02-29T10:00:00.123Z';
const source = { folder: 'blog', path: 'a/b.md', head: '---\n# kept\n---\n' };

const imported = (facts: Partial<ImportedPost> = {}): ImportedPost => ({
  ...{ id: undefined, title: 'Title', content: 'text', author: undefined, defaultAuthor: 'blog' },
  ...{ tags: ['b', 'a'], slug: 'title', status: 'published', publishedAt: undefined },
  ...{ createdAt: undefined, updatedAt: undefined, version: undefined, source, ...facts },
});
const store = async (facts: Partial<ImportedPost> = {}, force = false) =>
  (await transfer.store(imported(facts), force)).kind;
const plan = async (facts: Partial<ImportedPost> = {}) => (await transfer.plan(imported(facts), false)).kind;

async function readAll(): Promise<Post[]> {
  const all = [];
  for await (const page of transfer.pages()) all.push(...page);
  return all;
}
async function readOne(): Promise<Post> {
  const [post, ...more] = await readAll();
  if (post === undefined || more.length > 0) throw new Error('there is not exactly one post');
  return post;
}

describe('store', () => {
  it('a post with everything -> is created with that', async () => {
    const given = {
      ...{ id, author: 'Zoë', title: null, content: ` \r\n\u0001"\\😀'; DROP TABLE posts; --\n\n` },
      ...{ tags: ['{b}', 'a,"b"', ''], status: 'draft' as const, publishedAt: past, createdAt: past },
      ...{ updatedAt: '2021-01-01T00:00:00.000Z', version: 7 },
    };
    expect(await store(given)).toBe('created');
    expect(await readOne()).toEqual({ ...given, slug: 'title' });
  });

  it('a post with little -> the rest is filled in, its time of publication by that of creation', async () => {
    const before = Date.now();
    await store();
    const post = await readOne();
    expect(post).toMatchObject({ author: 'blog', version: 1, tags: ['b', 'a'] });
    expect(post.id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7/);
    for (const time of [post.publishedAt, post.createdAt, post.updatedAt])
      expect(Date.parse(time ?? '')).toBeGreaterThanOrEqual(before - 1);
    await posts.remove(post.id);
    await store({ createdAt: past });
    expect(await readOne()).toMatchObject({ publishedAt: past, createdAt: past, updatedAt: past });
    await store({ slug: 'draft', status: 'draft' });
    expect((await readAll()).map(({ publishedAt }) => publishedAt)).toEqual([past, null]);
  });

  it('a post that is the same -> is left alone', async () => {
    await store({ id });
    const before = await readOne();
    const { publishedAt, createdAt, updatedAt } = before;
    expect(await store()).toBe('unchanged');
    const times = { publishedAt: publishedAt ?? undefined, createdAt, updatedAt };
    expect(await store({ id, ...times, author: 'blog', version: 9 })).toBe('unchanged');
    expect(await readOne()).toEqual(before);
    for (const content of ['other', 'text']) await posts.patch(id, { content });
    expect(await plan({ content: 'new' })).toBe('stale');
    expect([await store(), await store({ content: 'new' })]).toEqual(['unchanged', 'changed']);
  });

  it.each<Partial<ImportedPost>>([
    { title: null },
    { content: 'other' },
    { author: 'Zoë' },
    { tags: ['a', 'b'] },
    { status: 'draft' },
    { slug: 'other' },
    { publishedAt: past },
    { createdAt: past },
  ])('a post that differs in %j -> is changed there, with a new version', async (facts) => {
    await store({ id });
    const before = await readOne();
    expect(await plan({ id, ...facts })).toBe('changed');
    expect(await readOne()).toEqual(before);
    expect(await store({ id, ...facts })).toBe('changed');
    const after = await readOne();
    expect(after).toEqual({ ...before, ...facts, version: 2, updatedAt: after.updatedAt });
    expect(Date.parse(after.updatedAt)).toBeGreaterThanOrEqual(Date.parse(before.updatedAt));
    expect(await store({ id, ...facts })).toBe('unchanged');
  });

  it('a post without author and times -> those that are there are kept', async () => {
    await store({ id, author: 'Zoë', publishedAt: past, createdAt: past });
    expect(await store({ id, content: 'other', status: 'draft' })).toBe('changed');
    expect(await readOne()).toMatchObject({ author: 'Zoë', publishedAt: past, createdAt: past, version: 2 });
  });

  it('a draft that a file publishes -> is published now, and not when it was created', async () => {
    await store({ id, status: 'draft', createdAt: past });
    expect(await store({ id, createdAt: past })).toBe('changed');
    expect((await readOne()).publishedAt).toBe((await readOne()).updatedAt);
  });

  it('a file of another database, where the post has the same version by another change -> is not taken for it', async () => {
    await store({ id });
    await posts.patch(id, { content: 'changed here' });
    const { version, updatedAt } = await readOne();
    const exported = { id, content: 'changed there', version, source: { ...source, path: 'c.md' } };
    expect(await store({ ...exported, updatedAt: past })).toBe('stale');
    expect(await store({ ...exported, updatedAt })).toBe('changed');
  });

  it('the slug of another post -> refused, and nothing changes', async () => {
    await store({ id });
    await store({ id: otherId, slug: 'other' });
    const before = await readAll();
    expect(await store({ id: '01890a5d-ac96-774b-bcce-b302099a8059' }, true)).toBe('taken');
    expect(await store({ id: otherId }, true)).toBe('taken');
    expect(await readAll()).toEqual(before);
  });

  it.each([{ id }, {}])('many equal ones at once, again and again (%j) -> one post', async (facts) => {
    for (let round = 0; round < 2; round += 1) {
      await database.run((db) => db.execute(sql`truncate posts cascade`));
      expect(await Promise.all(Array.from({ length: 20 }, () => store(facts)))).toContain('created');
      expect(await readOne()).toMatchObject({ version: 1 });
    }
  });

  it('a post that another writer changes in the middle -> is not written over', async () => {
    await store({ id });
    const { promise: changed, resolve: change } = Promise.withResolvers<void>();
    const { promise: locked, resolve: lock } = Promise.withResolvers<void>();
    const editing = database.run((db) =>
      db.transaction(async (transaction) => {
        await transaction.execute(sql`update posts set title = 'New', version = version + 1`);
        lock();
        await changed;
      }),
    );
    await locked;
    const storing = store({ id, content: 'other' });
    await vi.waitUntil(async () => {
      const rows = await database.run((db) =>
        db.execute(
          sql`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
        ),
      );
      return rows.length > 0;
    }, patience);
    change();
    await editing;
    expect(await storing).toBe('stale');
    expect(await readOne()).toMatchObject({ title: 'New', content: 'text' });
  });
});

describe('the file of a post', () => {
  const kept = async () => (await transfer.sources()).map(({ folder, path }) => `${folder}/${path}`);

  it('-> stays with it, and is gone with it', async () => {
    await store({ id });
    expect(await transfer.sources()).toEqual([{ id, slug: 'title', folder: 'blog', path: 'a/b.md' }]);
    await posts.patch(id, { slug: 'other' });
    expect(await kept()).toEqual(['blog/a/b.md']);
    await posts.remove(id);
    expect(await kept()).toEqual([]);
  });

  it('is another one with the same post -> is the one that may change it', async () => {
    await store({ id });
    const moved = { source: { ...source, path: 'c.md' } };
    expect(await plan({ ...moved, content: 'other' })).toBe('foreign');
    expect(await store(moved)).toBe('unchanged');
    expect(await kept()).toEqual(['blog/c.md']);
    expect(await plan({ content: 'other' })).toBe('foreign');
    expect(await store({ ...moved, content: 'other' })).toBe('changed');
  });
});
