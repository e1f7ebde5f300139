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
  it('creates a post with everything that is given', async () => {
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

  it('fills in what is left out', async () => {
    const before = new Date().toISOString();
    await transfer.store(imported());
    const post = await readOne();
    expect(post).toMatchObject({ author: 'blog', version: 1, tags: ['b', 'a'] });
    expect(post.id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7/);
    for (const time of [post.publishedAt, post.createdAt, post.updatedAt])
      expect(Date.parse(time ?? '')).toBeGreaterThanOrEqual(Date.parse(before) - 1);
  });

  it('publishes at the time of creation that is given, and a draft not at all', async () => {
    await transfer.store(imported({ createdAt: past }));
    expect(await readOne()).toMatchObject({ publishedAt: past, createdAt: past, updatedAt: past });
    await transfer.store(imported({ slug: 'draft', status: 'draft' }));
    expect((await readAll()).map(({ post }) => post.publishedAt)).toEqual([past, null]);
  });

  it('leaves a post alone that is the same', async () => {
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
  ])('changes a post where it differs, with a new version: %j', async (facts) => {
    await transfer.store(imported({ id }));
    const before = await readOne();
    expect(await transfer.store(imported({ id, ...facts }))).toBe('changed');
    const after = await readOne();
    expect(after).toEqual({ ...before, ...facts, version: 2, updatedAt: after.updatedAt });
    expect(Date.parse(after.updatedAt)).toBeGreaterThanOrEqual(Date.parse(before.updatedAt));
    expect(await transfer.store(imported({ id, ...facts }))).toBe('unchanged');
  });

  it('takes over a later time of change, not an earlier one', async () => {
    await transfer.store(imported({ id }));
    const before = await readOne();
    expect(await transfer.store(imported({ id, updatedAt: past }))).toBe('unchanged');
    const later = new Date(Date.parse(before.updatedAt) + 60_000).toISOString();
    expect(await transfer.store(imported({ id, updatedAt: later }))).toBe('changed');
    expect(await readOne()).toEqual({ ...before, updatedAt: later, version: 2 });
    expect(await transfer.store(imported({ id, updatedAt: later }))).toBe('unchanged');
  });

  it('keeps author and times that are left out', async () => {
    await transfer.store(imported({ id, author: 'Zoë', publishedAt: past, createdAt: past }));
    expect(await transfer.store(imported({ id, content: 'other', status: 'draft' }))).toBe('changed');
    expect(await readOne()).toMatchObject({ author: 'Zoë', publishedAt: past, createdAt: past, version: 2 });
  });

  it('refuses the slug of another post and changes nothing', async () => {
    await transfer.store(imported({ id }));
    await transfer.store(imported({ id: otherId, slug: 'other' }));
    const before = await readAll();
    const fresh = imported({ id: '01890a5d-ac96-774b-bcce-b302099a8059' });
    await expect(transfer.store(fresh)).rejects.toMatchObject({ code: 'slug_taken' });
    await expect(transfer.store(imported({ id: otherId }))).rejects.toMatchObject({ code: 'slug_taken' });
    expect(await readAll()).toEqual(before);
  });

  it('makes one post of many equal ones at once, over and over', async () => {
    for (let round = 0; round < 5; round += 1) {
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

  it('is written over when it is forced alone', async () => {
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

  it('may be written over by what was made from it as it is', async () => {
    await transfer.store(imported({ id, source }));
    await posts.patch(id, { title: 'New' });
    expect(await transfer.compare({ ...other, version: 3 })).toBe('stale');
    expect(await transfer.compare({ ...other, version: 2 })).toBe('different');
    await transfer.markExported(id, { ...source, version: 2 });
    expect(await transfer.compare(other)).toBe('different');
  });

  it('is not written over by who met the change in the middle', async () => {
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

  it('say whether the post is as it was imported, and stay with it when it is not', async () => {
    await transfer.store(imported({ id, source }));
    expect(await sources()).toEqual([{ ...source, isCurrent: true }]);
    await posts.patch(id, { title: 'Other', slug: 'other' });
    expect(await sources()).toEqual([{ ...source, isCurrent: false }]);
    expect(await transfer.sourcePaths()).toEqual(new Map([[id, source.path]]));
    expect(await transfer.store(imported({ id, source }), { force: true })).toBe('changed');
    expect(await sources()).toEqual([{ ...source, isCurrent: true }]);
  });

  it('are gone with their posts', async () => {
    await transfer.store(imported({ id, source }));
    await posts.remove(id);
    await transfer.store(imported({ id }));
    expect(await sources()).toEqual([null]);
    expect(await transfer.sourcePaths()).toEqual(new Map());
  });

  it('are renewed when only the file around the content changed', async () => {
    await transfer.store(imported({ id, source }));
    const renewed = { path: 'c.md', head: '---\n# new\n---\n' };
    expect(await transfer.store(imported({ id, source: renewed }))).toBe('unchanged');
    expect(await sources()).toEqual([{ ...renewed, isCurrent: true }]);
    expect(await transfer.store(imported({ id }))).toBe('unchanged');
    expect(await sources()).toEqual([{ ...renewed, isCurrent: true }]);
  });
});

describe('pages', () => {
  const lengthsOfPages = async () => (await readPages()).map(({ length }) => length);

  it('gives every post once, in the order of the ids, also those made meanwhile at most once', async () => {
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

  it('ends a page after the post that makes it a mebibyte, heads included', async () => {
    const content = 'x'.repeat(200_000);
    const source = { path: 'a.md', head: 'x'.repeat(100_000) };
    for (let number = 0; number < 5; number++)
      await transfer.store(imported({ slug: `post-${number}`, content, source }));
    expect(await lengthsOfPages()).toEqual([4, 1]);
  });

  it('gives a post that is longer than a page', async () => {
    const source = { path: 'a.md', head: 'x'.repeat(2 * 1024 * 1024) };
    for (const slug of ['one', 'two']) await transfer.store(imported({ slug, source }));
    expect(await lengthsOfPages()).toEqual([1, 1]);
  });
});

describe('slugOwners', () => {
  it('finds who has a slug and its file, among more slugs than fit into one statement', async () => {
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
