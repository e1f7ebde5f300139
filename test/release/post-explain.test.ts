import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Database, openDatabase } from '../../db/database/client.js';
import { drizzle } from '../../db/database/drizzle.js';
import type { PostFilter } from '../../db/posts/post-lists.js';
import { PostStore } from '../../db/posts/post-store.js';
import { startTestDatabase, type TestDatabase } from '../support/database.js';
import { userNamed } from '../support/identities.js';
import { createRecordingLog } from '../support/recording-log.js';

/**
 * Shows of every query that it reads what it needs through an index, in a table of 100,000 posts. What is explained
 * is the very statement that the store sends, with its values, or planned for any values where it is sent prepared.
 */

interface Statement {
  text: string;
  values: unknown[];
}

/** A node of a plan as EXPLAIN's JSON has it; `rows` were given on, `read` were looked at. */
interface PlanNode {
  type: string;
  index: string | undefined;
  rows: number;
  read: number;
}

type PlanJson = Record<string, string | number> & { Plans?: PlanJson[] };

const allPosts = 100_000;
const pageSize = 100;

let server: TestDatabase;
let database: Database;
let client: postgres.Sql;
let store: PostStore;
let sent: Statement[] = [];

beforeAll(async () => {
  server = await startTestDatabase();
  database = openDatabase({ url: server.url, poolSize: 1, log: createRecordingLog().log });
  const debug = (_connection: number, text: string, values: unknown[]) => void sent.push({ text, values });
  client = postgres(server.url, { max: 1, fetch_types: false, onnotice: () => undefined, debug });
  const db = drizzle(client);
  const run: Database['run'] = async (query) => await query(db);
  store = new PostStore({ ...database, run, withSharedDeadline: () => ({ run }) });
  await seed();
}, 600_000);

afterAll(async () => {
  await client.end();
  await database.close();
  await server.stop();
});

/** Words and tags are used the less the higher their number: the first is in nearly every post. */
async function seed(): Promise<void> {
  await client`select setseed(0.42)`;
  await client`
    insert into posts (id, title, content, author, tags, slug, status, published_at, created_at, updated_at)
    select uuidv7(created_at - now()), 'Post number ' || n, words, 'author-' || floor(500 * random()),
      array['tag-' || floor(200 * random() ^ 3), 'tag-' || floor(200 * random() ^ 3)], 'post-number-' || n,
      case when n % 20 = 0 then 'draft' else 'published' end, case when n % 20 > 0 then created_at end,
      created_at, created_at
    from generate_series(1, ${allPosts}::int) as n,
      lateral (select now() - interval '1 minute' * (${allPosts}::int - n)) as time (created_at),
      lateral (
        select string_agg('word' || floor(5000 * random() ^ 3), ' ') from generate_series(1, 40 + n % 30)
      ) as text (words)`;
  await client`analyze posts`;
}

/** The statements that the store sends while it does something. */
async function sentBy(act: () => Promise<unknown>): Promise<Statement[]> {
  sent = [];
  await act();
  // The statement that explains them is sent as well.
  return [...sent];
}

/** The plan of the only statement that is sent, and what running it came to. */
async function planOf(act: () => Promise<unknown>): Promise<PlanNode[]> {
  const [statement, ...others] = await sentBy(act);
  expect(others).toEqual([]);
  return explain(statement, 'analyze, buffers off');
}

async function explain(statement: Statement | undefined, options: string): Promise<PlanNode[]> {
  const { text = '', values = [] } = statement ?? {};
  const rows = await client.unsafe(`explain (${options}, format json) ${text}`, values as string[]);
  return nodesOf(rows[0]?.['QUERY PLAN'][0].Plan);
}

function nodesOf({ Plans = [], ...node }: PlanJson): PlanNode[] {
  const total = (name: string) => Number(node[name] ?? 0) * Number(node['Actual Loops'] ?? 1);
  const rows = total('Actual Rows');
  const read = rows + total('Rows Removed by Filter') + total('Rows Removed by Index Recheck');
  const index = node['Index Name'] as string | undefined;
  return [{ type: String(node['Node Type']), index, rows, read }, ...Plans.flatMap(nodesOf)];
}

const indexesOf = (plan: PlanNode[]) => plan.flatMap(({ index }) => index ?? []);
const typesOf = (plan: PlanNode[]) => plan.map(({ type }) => type);
/** The most rows that any step of the plan has looked at. */
const maxRead = (plan: PlanNode[]) => Math.max(...plan.map(({ read }) => read));

const list = (filter: Partial<PostFilter> = {}) => store.list({ limit: pageSize, drafts: false, ...filter });

async function placeOfPage(page: number, filter: Partial<PostFilter> = {}): Promise<Partial<PostFilter>> {
  let after: PostFilter['after'];
  for (let ahead = (page - 1) * pageSize; ahead > 0; ahead -= 200) {
    const { next } = await list({ ...filter, limit: Math.min(ahead, 200), ...(after && { after }) });
    after = next;
  }
  return { ...filter, ...(after && { after }) };
}

describe('the lists', () => {
  it.each<[string, Partial<PostFilter>, string, number]>([
    ["readers' first page", {}, 'posts_published_newest', pageSize + 1],
    ["writers' first page", { drafts: true }, 'posts_newest', pageSize + 1],
    [
      "writers' published posts",
      { drafts: true, status: 'published' },
      'posts_published_newest',
      pageSize + 1,
    ],
    ['by author', { author: 'author-7' }, 'posts_author_newest', 150],
    ['by author, with drafts', { author: 'author-7', drafts: true }, 'posts_author_newest', pageSize + 1],
    ['by a rare tag', { tag: 'tag-199' }, 'posts_tags', 1000],
    ['by a common tag', { tag: 'tag-0' }, 'posts_published_newest', 1000],
    ['by a common tag, with drafts', { tag: 'tag-0', drafts: true }, 'posts_newest', 1000],
    ['by a rare word', { search: 'word4999' }, 'posts_search', 1000],
    ['by a common word', { search: 'word0' }, 'posts_published_newest', 1000],
    ['by a word that no post has', { search: 'nowhere' }, 'posts_search', 10],
    ['by a tag that no post has', { tag: 'nowhere' }, 'posts_tags', 10],
  ])('read little, through one index: %s', async (_, filter, index, most) => {
    const plan = await planOf(() => list(filter));
    expect(indexesOf(plan)).toEqual([index]);
    expect(typesOf(plan)).not.toContain('Seq Scan');
    if (index.endsWith('_newest')) expect(typesOf(plan)).not.toContain('Sort');
    expect(maxRead(plan)).toBeLessThanOrEqual(most);
  });

  it.each<[string, Partial<PostFilter>]>([
    ['by readers', {}],
    ['by writers', { drafts: true }],
  ])('read no more for the 500th page: %s', async (_, filter) => {
    const deep = await placeOfPage(500, filter);
    const plan = await planOf(() => list(deep));
    expect(maxRead(plan)).toBe(maxRead(await planOf(() => list(filter))));
    expect(indexesOf(plan)).toEqual(indexesOf(await planOf(() => list(filter))));
  });

  it.each<[string, Partial<PostFilter>, string]>([
    ['of all posts', {}, 'posts_published_newest'],
    ['of an author', { author: 'author-7' }, 'posts_author_newest'],
  ])('lead both ways through the same index, with what lies beyond a page: %s', async (_, filter, index) => {
    const { after } = await placeOfPage(filter.author ? 2 : 500, filter);
    if (!after) throw new Error('there is no such page');
    for (const place of [{ after }, { before: after }]) {
      const statements = await sentBy(() => store.summaries({ limit: 20, ...filter, ...place }));
      expect(statements).toHaveLength(2);
      for (const statement of statements) {
        const plan = await explain(statement, 'analyze, buffers off');
        expect(new Set(indexesOf(plan))).toEqual(new Set([index]));
        expect(typesOf(plan)).not.toContain('Seq Scan');
        expect(maxRead(plan)).toBeLessThanOrEqual(50);
      }
    }
  });
});

describe('what is sent prepared', () => {
  it.each<[string, string, () => Promise<unknown>]>([
    ['a post', 'posts_pkey', () => store.get('019aa1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b', { drafts: false })],
    ['the newest posts', 'posts_published_newest', () => store.newest(50)],
    ["readers' first page", 'posts_published_newest', () => list()],
    ["readers' next page", 'posts_published_newest', async () => list(await placeOfPage(2))],
    ["writers' first page", 'posts_newest', () => list({ drafts: true })],
    ['posts of an author', 'posts_author_newest', () => list({ author: 'author-7' })],
  ])('uses its index also in a plan for any values: %s', async (_, index, act) => {
    const statement = (await sentBy(act)).at(-1);
    const plan = await explain(statement && { ...statement, values: [] }, 'generic_plan');
    expect(indexesOf(plan)).toEqual([index]);
  });

  it.each([{ tag: 'tag-7' }, { search: 'word4999' }])(
    'is nothing that is planned for its values: %j',
    async (filter) => {
      const [{ text } = { text: '' }] = await sentBy(() => list(filter));
      const prepared = await client`select from pg_prepared_statements where statement = ${text}`;
      expect([text.length > 0, prepared.length]).toEqual([true, 0]);
    },
  );
});

describe('the writes', () => {
  const fields = { content: 'New', title: 'Post number 5', author: 'ada', tags: [], slug: undefined };

  it('find slugs, requests and versions through indexes', async () => {
    const request = { user: userNamed('ada'), key: 'key', hash: Buffer.alloc(32) };
    const published = { ...fields, status: 'published' } as const;
    const { post } = await store.create(published, request);
    const statements = await sentBy(async () => {
      await store.create(published, request);
      await store.replace(post.id, published, { expected: [post] });
      await store.patch(post.id, { slug: null });
      await store.remove(post.id, { expected: [post] });
    });
    expect(statements.length).toBeGreaterThanOrEqual(6);
    for (const statement of statements)
      expect(typesOf(await explain(statement, 'buffers off'))).not.toContain('Seq Scan');
  });
});

describe('the search vector of a post', () => {
  /** A text of so many characters, made of one part again and again. */
  const filled = (part: string, length: number) => {
    const characters = Array.from(part);
    return Array.from({ length }, (_, n) => characters[n % characters.length]).join('');
  };
  it('the longest post -> is stored and found in time', async () => {
    const longest = { title: null, author: 'ada', slug: undefined, status: 'published' } as const;
    const posts = new PostStore(database);
    const content = filled('snake_case_name_', 262_144);
    const { post } = await posts.create({ ...longest, tags: [], content });
    const found = await posts.list({ limit: 1, drafts: false, search: 'snake_case_name' });
    expect(found.posts[0]?.id).toBe(post.id);
  });
});
