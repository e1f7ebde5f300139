import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { sql } from '../../../db/database/drizzle.js';
import type { PostFields } from '../../../db/posts/post-creation.js';
import type { PostFilter } from '../../../db/posts/post-lists.js';
import { PostStore } from '../../../db/posts/post-store.js';
import type { Post } from '../../../shared/contracts/contract.js';
import { openTestDatabase } from '../../support/database.js';
import { fields } from '../post-stores.js';

const { database, stop } = await openTestDatabase({ poolSize: 4 });
afterAll(stop);
beforeEach(() => database.run((db) => db.execute(sql`truncate posts cascade`)));

const store = new PostStore(database);

const make = async (some: Partial<PostFields> = {}): Promise<Post> => (await store.create(fields(some))).post;
const list = (filter: Partial<PostFilter> = {}) => store.list({ limit: 100, drafts: false, ...filter });
const idsOf = (posts: { id: string }[]) => posts.map(({ id }) => id);
const found = async (filter: Partial<PostFilter>) => idsOf((await list(filter)).posts);

/** The posts of each page, one page after the other. */
async function readPages(filter: Partial<PostFilter>): Promise<Post[][]> {
  const read: Post[][] = [];
  for (let after: PostFilter['after']; ; ) {
    const { posts, next } = await list({ ...filter, after });
    read.push(posts);
    if (next === undefined) return read;
    after = next;
  }
}
/** The ids on all pages, in their order. */
const walk = async (filter: Partial<PostFilter>) => (await readPages(filter)).flatMap(idsOf);

describe('list', () => {
  it('posts -> whole, newest first', async () => {
    const [first, second, third] = [await make({ title: 'One', tags: ['a'] }), await make(), await make()];
    expect(await list()).toEqual({ posts: [third, second, first], next: undefined });
  });

  it.each(['NFC', 'NFD'])('a tag in either form -> the posts that have it as %s', async (form) => {
    const post = await make({ tags: ['Café'.normalize(form)] });
    for (const asked of ['NFC', 'NFD'])
      expect(await found({ tag: 'Café'.normalize(asked) })).toEqual([post.id]);
    expect(await found({ tag: 'Cafe' })).toEqual([]);
  });

  it('drafts among posts, or asked for alone -> are shown to those who may see them, and to nobody else', async () => {
    const drafted: Partial<PostFields> = { status: 'draft', tags: ['a'] };
    const [old, post, draft] = [await make(drafted), await make(), await make(drafted)];
    expect(await found({ drafts: true })).toEqual([draft.id, post.id, old.id]);
    for (const [filter, ids] of [
      [{}, [post.id]],
      [{ status: 'published' }, [post.id]],
      [{ status: 'draft' }, []],
      [{ tag: 'a' }, []],
      [{ author: 'ada' }, [post.id]],
      [{ search: 'text' }, [post.id]],
    ] as const)
      expect(await found(filter), JSON.stringify(filter)).toEqual(ids);
    for (const filter of [{ tag: 'a' }, { author: 'ada' }, { search: 'text' }])
      expect(await found({ ...filter, drafts: true })).toContain(draft.id);
    expect(await found({ drafts: true, status: 'published' })).toEqual([post.id]);
    expect(await walk({ drafts: true, status: 'draft', limit: 1 })).toEqual([draft.id, old.id]);
  });

  it('a draft that has just been published -> is first', async () => {
    const draft = await make({ status: 'draft' });
    await seed(1, sql`now() - interval '1 second'`);
    await store.patch(draft.id, { status: 'published' });
    const [first, ...others] = await found({});
    expect(first).toBe(draft.id);
    expect(others).toHaveLength(1);
  });

  it('a page -> says where the next one starts exactly when there is one', async () => {
    const ids = idsOf([await make(), await make(), await make()]).reverse();
    const first = await list({ limit: 2 });
    expect(idsOf(first.posts)).toEqual(ids.slice(0, 2));
    expect(first.next).toEqual({ sortedAt: expect.any(Date), id: ids[1] });
    expect((await list({ limit: 3 })).next).toBeUndefined();
    const second = await list({ limit: 2, ...(first.next && { after: first.next }) });
    expect([idsOf(second.posts), second.next]).toEqual([ids.slice(2), undefined]);
  });

  it('posts of the same moment -> each once, page by page', async () => {
    await seed(200, sql`'2026-01-01T00:00:00.120Z'`);
    const seen = await walk({ limit: 7 });
    expect(seen).toHaveLength(200);
    expect(seen).toEqual([...new Set(seen)].sort().reverse());
  });

  it('posts that are added meanwhile -> each once that was there at the start', async () => {
    await seed(300, sql`now() - interval '1 second' * (n / 3)`);
    const before = idsOf((await list({ limit: 200 })).posts);
    before.push(...(await walk({ limit: 200 })).slice(200));
    expect(before).toHaveLength(300);

    const walking = new AbortController();
    const written = writeUntil(walking.signal);
    const seen = await walk({ limit: 7 }).finally(() => walking.abort());
    expect(await written).toBeGreaterThan(0);
    expect(seen.filter((id) => before.includes(id))).toEqual(before);
    expect(new Set(seen).size).toBe(seen.length);
  });

  it('a place to lead back to -> what is right before it, newest first, and on from there', async () => {
    await seed(20, sql`'2026-01-01T00:00:00.120Z'`);
    const all = await list();
    const placed = (n: number) => ({
      sortedAt: new Date('2026-01-01T00:00:00.120Z'),
      id: all.posts[n]?.id ?? '',
    });
    const back = await list({ limit: 7, before: placed(10) });
    expect(back).toEqual({ posts: all.posts.slice(3, 10), next: placed(9) });
    const first = await list({ limit: 7, before: placed(3) });
    expect(first).toEqual({ posts: all.posts.slice(0, 3), next: placed(2) });
    expect(await list({ before: { ...placed(19), id: '00000000-0000-7000-8000-000000000000' } })).toEqual(
      all,
    );
  });

  it('long posts -> a page ends early, goes on behind it, and leads back no further than it may be long', async () => {
    const content = '漢'.repeat(262_144);
    const ids: string[] = [];
    for (let n = 0; n < 4; n++) ids.unshift((await make({ content })).id);
    const seen = await readPages({ limit: 200 });
    expect(seen.flat().every((post) => post.content === content)).toBe(true);
    expect(seen.map(idsOf)).toEqual([ids.slice(0, 3), ids.slice(3)]);
    const back = await list({ before: { sortedAt: new Date(0), id: ids[3] ?? '' } });
    expect([idsOf(back.posts), back.next]).toEqual([ids.slice(1), undefined]);
  });

  it.each(['plain', 'two words', '{curly,"quoted"}', 'back\\slash', "'; DROP TABLE posts; --", 'null', '🎉'])(
    'a tag or an author, exactly as it is written -> the posts of that: %s',
    async (text) => {
      const [tagged, written] = [await make({ tags: ['other', text] }), await make({ author: text })];
      await make({ tags: ['other', `${text}s`], author: `${text}s` });
      expect(await found({ tag: text })).toEqual([tagged.id]);
      expect(await found({ author: text })).toEqual([written.id]);
      expect(await found({ author: text.toUpperCase() })).toEqual(
        text === text.toUpperCase() ? [written.id] : [],
      );
    },
  );

  it('words, phrases and words to leave out -> the posts whose title or text has them', async () => {
    const queue = await make({ title: 'Queues explained', content: 'A durable queue keeps jobs.' });
    const blog = await make({ content: 'Running a blog: the job of keeping a queue short.' });
    expect(await found({ search: 'queues' })).toEqual([blog.id, queue.id]);
    expect(await found({ search: 'explain' })).toEqual([queue.id]);
    expect(await found({ search: 'ran OR running' })).toEqual([blog.id]);
    expect(await found({ search: '"durable queue"' })).toEqual([queue.id]);
    expect(await found({ search: '"queue durable"' })).toEqual([]);
    expect(await found({ search: 'queue -blog' })).toEqual([queue.id]);
  });

  it('what people type -> is taken for a search, whatever it is', async () => {
    await make({ content: 'nothing of that' });
    const typed = [
      'the',
      "'",
      '"',
      '"unclosed',
      '&|!()<->:*',
      '-',
      '-- or',
      "'; DROP TABLE posts; --",
      '🎉',
      '\\',
    ];
    for (const search of typed) expect(await found({ search }), search).toEqual([]);
  });

  it('several conditions -> all hold, page by page', async () => {
    const wanted: string[] = [];
    for (let n = 0; n < 5; n++) {
      wanted.unshift((await make({ tags: ['a'], content: 'words' })).id);
      await make({ tags: ['a'], content: 'words', author: 'bob' });
      await make({ tags: ['a'] });
      await make({ content: 'words' });
    }
    expect(await walk({ limit: 2, tag: 'a', author: 'ada', search: 'word' })).toEqual(wanted);
  });
});

describe('summaries', () => {
  const summaries = (filter: Partial<PostFilter>) => store.summaries({ limit: 2, ...filter });
  const moment = sql`'2026-01-01T00:00:00Z'::timestamptz + interval '1 second' * n`;

  it('of a page -> say what lies beyond it, counted as far as a page goes', async () => {
    await seed(7, moment);
    const first = await summaries({});
    expect(first.beyond).toEqual({ newer: 0, older: true });
    const second = await summaries({ after: first.ends?.oldest });
    expect(second.beyond).toEqual({ newer: 2, older: true });
    const third = await summaries({ after: second.ends?.oldest });
    expect(third.beyond).toEqual({ newer: 3, older: true });
    expect(await summaries({ before: third.ends?.newest })).toEqual(second);
    const last = await summaries({ after: third.ends?.oldest });
    expect([last.posts.length, last.beyond]).toEqual([1, { newer: 3, older: false }]);
  });

  it('of a list with drafts and others -> count only what is on it', async () => {
    const [post, other] = [await make({ author: 'bob' }), await make({ author: 'bob' })];
    await make({ author: 'bob', status: 'draft' });
    await make();
    const place = { sortedAt: new Date(post.publishedAt ?? ''), id: post.id };
    const page = await summaries({ author: 'bob', before: place });
    expect([idsOf(page.posts), page.beyond]).toEqual([[other.id], { newer: 0, older: true }]);
    expect(page.posts[0]).toMatchObject({ version: other.version, updatedAt: other.updatedAt });
  });

  it('beyond the ends -> lead back from behind the last post, and on from before the first one', async () => {
    await seed(3, moment);
    const { posts } = await summaries({ limit: 3 });
    const placed = (n: number) => ({
      sortedAt: new Date(posts[n]?.publishedAt ?? ''),
      id: posts[n]?.id ?? '',
    });
    const behind = await summaries({ after: placed(2) });
    expect([behind.posts, behind.beyond]).toEqual([[], { newer: 3, older: false }]);
    const last = await summaries(behind.ends ? { before: behind.ends.newest } : {});
    expect(idsOf(last.posts)).toEqual(idsOf(posts.slice(1)));
    const ahead = await summaries({ before: placed(0) });
    expect([ahead.posts, ahead.beyond]).toEqual([[], { newer: 0, older: true }]);
    const first = await summaries(ahead.ends ? { after: ahead.ends.oldest } : {});
    expect(idsOf(first.posts)).toEqual(idsOf(posts.slice(0, 2)));
  });
});

describe('newest', () => {
  it('posts and a draft -> the versions of the posts, newest first', async () => {
    const [first, second] = [await make(), await make()];
    await make({ status: 'draft' });
    const { id, version, updatedAt } = second;
    expect(await store.newest(1)).toEqual([{ id, version, updatedAt }]);
    expect(idsOf(await store.newest(50))).toEqual([second.id, first.id]);
  });
});

/** Creates posts one after the other and says in the end how many. */
async function writeUntil(signal: AbortSignal): Promise<number> {
  let written = 0;
  for (; !signal.aborted; written++) await make();
  return written;
}

/** Published posts number 1 and up, created at a moment that the SQL makes of the number `n`. */
const seed = (count: number, createdAt: ReturnType<typeof sql>) =>
  database.run((db) =>
    db.execute(sql`
      insert into posts (id, content, author, tags, slug, status, created_at)
      select gen_random_uuid(), 'Text', 'ada', '{}', 'seeded-' || n, 'published', ${createdAt}
      from generate_series(1, ${count}::int) as n`),
  );
