import { afterAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { sql } from '../../../db/database/drizzle.js';
import { createPostImport, type ImportedPost } from '../../../db/posts/post-import.js';
import { PostStore } from '../../../db/posts/post-store.js';
import type { Post } from '../../../shared/contract.js';
import { openTestDatabase } from '../../support/database.js';
import { patience } from '../../support/patience.js';

const { database, stop } = await openTestDatabase({ poolSize: 8 });
afterAll(stop);
beforeEach(() => database.run((db) => db.execute(sql`truncate posts cascade`)));

const transfer = createPostImport(database);
const posts = new PostStore(database);

const id = '01890a5d-ac96-774b-bcce-b302099a8057';
const otherId = '01890a5d-ac96-774b-bcce-b302099a8058';
const past = '2020-02-29T10:00:00.123Z';

const imported = (facts: Partial<ImportedPost> = {}): ImportedPost => ({
  id: undefined,
  title: 'Title',
  content: 'text',
  author: undefined,
  defaultAuthor: 'blog',
  tags: ['b', 'a'],
  slug: 'title',
  status: 'published',
  publishedAt: undefined,
  createdAt: undefined,
  updatedAt: undefined,
  version: undefined,
  source: undefined,
  ...facts,
});

async function readPages() {
  const pages = [];
  for await (const page of transfer.pages()) pages.push(page);
  return pages;
}
const readAll = async () => (await readPages()).flat();

async function readOne(): Promise<Post> {
  const [exported, ...more] = await readAll();
  if (exported === undefined || more.length > 0) throw new Error('there is not exactly one post');
  return exported.post;
}

describe('store', () => {
  it('a post with everything -> is created with that', async () => {
    const given = {
      id,
      author: 'Zoë',
      title: null,
      content: ` \r\n\u0001"\\😀'; DROP TABLE posts; --\n\n`,
      tags: ['{b}', 'a,"b"', ''],
      status: 'draft' as const,
      publishedAt: past,
      createdAt: past,
      updatedAt: '2021-01-01T00:00:00.000Z',
      version: 7,
    };
    expect(await transfer.store(imported(given))).toBe('created');
    expect(await readOne()).toEqual({ ...given, slug: 'title' });
  });

  it('a post with little -> the rest is filled in, its time of publication by that of creation', async () => {
    const before = new Date().toISOString();
    await transfer.store(imported());
    const post = await readOne();
    expect(post).toMatchObject({ author: 'blog', version: 1, tags: ['b', 'a'] });
    expect(post.id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7/);
    for (const time of [post.publishedAt, post.createdAt, post.updatedAt])
      expect(Date.parse(time ?? '')).toBeGreaterThanOrEqual(Date.parse(before) - 1);
    await posts.remove(post.id);
    await transfer.store(imported({ createdAt: past }));
    expect(await readOne()).toMatchObject({ publishedAt: past, createdAt: past, updatedAt: past });
    await transfer.store(imported({ slug: 'draft', status: 'draft' }));
    expect((await readAll()).map(({ post }) => post.publishedAt)).toEqual([past, null]);
  });

  it('a post that is the same -> is left alone', async () => {
    await transfer.store(imported({ id }));
    const before = await readOne();
    expect(await transfer.store(imported({ id }))).toBe('unchanged');
    expect(await transfer.store(imported({ id, ...times(before), author: 'blog', version: 9 }))).toBe(
      'unchanged',
    );
    expect(await readOne()).toEqual(before);
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
    await transfer.store(imported({ id }));
    const before = await readOne();
    expect(await transfer.store(imported({ id, ...facts }))).toBe('changed');
    const after = await readOne();
    expect(after).toEqual({ ...before, ...facts, version: 2, updatedAt: after.updatedAt });
    expect(Date.parse(after.updatedAt)).toBeGreaterThanOrEqual(Date.parse(before.updatedAt));
    expect(await transfer.store(imported({ id, ...facts }))).toBe('unchanged');
  });

  it('another time of change -> is taken over if it is later', async () => {
    await transfer.store(imported({ id }));
    const before = await readOne();
    expect(await transfer.store(imported({ id, updatedAt: past }))).toBe('unchanged');
    const later = new Date(Date.parse(before.updatedAt) + 60_000).toISOString();
    expect(await transfer.store(imported({ id, updatedAt: later }))).toBe('changed');
    expect(await readOne()).toEqual({ ...before, updatedAt: later, version: 2 });
    expect(await transfer.store(imported({ id, updatedAt: later }))).toBe('unchanged');
  });

  it('a post without author and times -> those that are there are kept', async () => {
    await transfer.store(imported({ id, author: 'Zoë', publishedAt: past, createdAt: past }));
    expect(await transfer.store(imported({ id, content: 'other', status: 'draft' }))).toBe('changed');
    expect(await readOne()).toMatchObject({ author: 'Zoë', publishedAt: past, createdAt: past, version: 2 });
  });

  it('the slug of another post -> refused, and nothing changes', async () => {
    await transfer.store(imported({ id }));
    await transfer.store(imported({ id: otherId, slug: 'other' }));
    const before = await readAll();
    const fresh = imported({ id: '01890a5d-ac96-774b-bcce-b302099a8059' });
    await expect(transfer.store(fresh)).rejects.toMatchObject({ code: 'slug_taken' });
    await expect(transfer.store(imported({ id: otherId }))).rejects.toMatchObject({ code: 'slug_taken' });
    expect(await readAll()).toEqual(before);
  });

  it('many equal ones at once, again and again -> one post', async () => {
    for (let round = 0; round < 2; round += 1) {
      await database.run((db) => db.execute(sql`truncate posts cascade`));
      const storing = Array.from({ length: 20 }, () => transfer.store(imported({ id })));
      expect(await Promise.all(storing)).toContain('created');
      expect(await readOne()).toMatchObject({ version: 1 });
    }
  });
});

describe('a post that was changed since its file was read', () => {
  const source = { path: 'a.md', head: '' };
  const other = imported({ id, content: 'other', source });

  it('and is imported again -> is written over only when that is forced', async () => {
    await transfer.store(imported({ id, source }));
    expect(await transfer.compare(imported({ id }))).toBe('same');
    expect(await transfer.compare(other)).toBe('different');
    expect(await transfer.compare(imported({ id: otherId }))).toBe('missing');
    expect(await readOne()).toMatchObject({ content: 'text', version: 1 });
    await posts.patch(id, { title: 'New' });
    expect(await transfer.changedSinceImport([otherId, id])).toEqual(new Set([id]));
    expect(await transfer.compare(other)).toBe('stale');
    await expect(transfer.store(other)).rejects.toMatchObject({ code: 'precondition_failed' });
    expect(await readOne()).toMatchObject({ title: 'New', content: 'text', version: 2 });
    expect(await transfer.store(other, { force: true })).toBe('changed');
    expect(await transfer.changedSinceImport([id])).toEqual(new Set());
    expect(await transfer.store({ ...other, content: 'more' })).toBe('changed');
  });

  it('and is imported from what was made of it as it is -> may be written over', async () => {
    await transfer.store(imported({ id, source }));
    await posts.patch(id, { title: 'New' });
    expect(await transfer.compare({ ...other, version: 3 })).toBe('stale');
    expect(await transfer.compare({ ...other, version: 2 })).toBe('different');
    await transfer.markExported(id, { ...source, version: 2 });
    expect(await transfer.compare(other)).toBe('different');
  });

  it('in the middle of an import -> is not written over', async () => {
    await transfer.store(imported({ id, source }));
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
    const storing = transfer.store(other).catch((error: unknown) => error);
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
    expect(await storing).toMatchObject({ code: 'precondition_failed' });
    expect(await readOne()).toMatchObject({ title: 'New', content: 'text' });
  });
});

const times = ({ publishedAt, createdAt, updatedAt }: Post) => ({
  publishedAt: publishedAt ?? undefined,
  createdAt,
  updatedAt,
});

describe('sources', () => {
  const source = { path: 'a/b.md', head: '---\n# kept\n---\n' };
  const sources = async () => (await readAll()).map((exported) => exported.source);

  it('of a post that is changed -> stay with it, and say that it is not as it was imported', async () => {
    await transfer.store(imported({ id, source }));
    expect(await sources()).toEqual([{ ...source, isCurrent: true }]);
    await posts.patch(id, { title: 'Other', slug: 'other' });
    expect(await sources()).toEqual([{ ...source, isCurrent: false }]);
    expect(await transfer.sourcePaths()).toEqual(new Map([[id, source.path]]));
    expect(await transfer.store(imported({ id, source }), { force: true })).toBe('changed');
    expect(await sources()).toEqual([{ ...source, isCurrent: true }]);
  });

  it('of a post that is removed -> are gone with it', async () => {
    await transfer.store(imported({ id, source }));
    await posts.remove(id);
    await transfer.store(imported({ id }));
    expect(await sources()).toEqual([null]);
    expect(await transfer.sourcePaths()).toEqual(new Map());
  });

  it('of a file that changed around the content alone -> are renewed', async () => {
    await transfer.store(imported({ id, source }));
    const renewed = { path: 'c.md', head: '---\n# new\n---\n' };
    expect(await transfer.store(imported({ id, source: renewed }))).toBe('unchanged');
    expect(await sources()).toEqual([{ ...renewed, isCurrent: true }]);
    expect(await transfer.store(imported({ id }))).toBe('unchanged');
    expect(await sources()).toEqual([{ ...renewed, isCurrent: true }]);
  });
});

describe('pages', () => {
  it('of many posts -> have each once, in the order of the ids, and those made meanwhile at most once', async () => {
    await database.run((db) =>
      db.execute(sql`
        insert into posts (id, content, author, tags, slug, status)
        select ('00000000-0000-7000-8000-' || lpad(number::text, 12, '0'))::uuid, 'text', 'blog', '{}', 'post-' || number, 'draft'
        from generate_series(1, 450) as number`),
    );
    const seen: string[] = [];
    for await (const page of transfer.pages()) {
      expect(page.length).toBeLessThanOrEqual(200);
      if (seen.length === 0) await transfer.store(imported({ slug: 'late' }));
      seen.push(...page.map(({ post }) => post.id));
    }
    expect(seen).toEqual([...new Set(seen)].sort());
    expect(seen).toHaveLength(451);
  });

  it.each([
    ['ends after the post that makes it a mebibyte', 5, 200_000, 100_000, [4, 1]],
    ['has one post that is longer', 2, 4, 2 * 1024 * 1024, [1, 1]],
  ])('of long posts and heads -> each %s', async (_, count, contentLength, headLength, lengths) => {
    const source = { path: 'a.md', head: 'x'.repeat(headLength) };
    for (let n = 0; n < count; n += 1)
      await transfer.store(imported({ slug: `post-${n}`, content: 'x'.repeat(contentLength), source }));
    expect((await readPages()).map(({ length }) => length)).toEqual(lengths);
  });
});

describe('slugOwners', () => {
  it('more slugs than fit into one statement -> who has each, and the file of that', async () => {
    await transfer.store(imported({ id, source: { path: 'a/b.md', head: '' } }));
    await transfer.store(imported({ id: otherId, slug: 'other' }));
    const others = Array.from({ length: 2500 }, (_, number) => `free-${number}`);
    expect(await transfer.slugOwners([...others, 'title', 'other'])).toEqual(
      new Map([
        ['title', { id, path: 'a/b.md' }],
        ['other', { id: otherId, path: null }],
      ]),
    );
    expect(await transfer.slugOwners([])).toEqual(new Map());
  });
});
