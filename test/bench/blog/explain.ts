import postgres from 'postgres';
import type { Database } from '../../../db/database/client.js';
import { drizzle } from '../../../db/database/drizzle.js';
import type { Position, PostFilter } from '../../../db/posts/post-lists.js';
import { PostStore } from '../../../db/posts/post-store.js';
import type { Explanation } from './results.js';
import type { Seeded } from './seed.js';

/** PostgreSQL decides at the sixth run whether a prepared statement gets one plan for all values. */
const runsBefore = 8;
const farPage = 500;

/** Lets the post store ask the database in its own words, and asks how those are carried out. */
export async function explainQueries(url: string, seeded: Seeded): Promise<Explanation[]> {
  const sent: Statement[] = [];
  const debug = (_connection: number, text: string, values: unknown[]) => void sent.push({ text, values });
  // One connection: it is the one that holds the prepared statements.
  const client = postgres(url, { max: 1, fetch_types: false, onnotice: () => undefined, debug });
  const db = drizzle(client);
  const run: Database['run'] = async (query) => await query(db);
  const database: Pick<Database, 'run' | 'withSharedDeadline'> = { run, withSharedDeadline: () => ({ run }) };
  const store = new PostStore(database as Database);
  try {
    const explanations: Explanation[] = [];
    for (const [query, ask] of queries(seeded, await walkTo(farPage, store))) {
      for (let run = 0; run < runsBefore; run += 1) await ask(store);
      const statement = sent.at(-1);
      if (statement === undefined) throw new Error(`nothing was sent for ${query}`);
      explanations.push({ query, statement: statement.text, plan: await planOf(statement, client) });
    }
    return explanations;
  } finally {
    await client.end({ timeout: 1 });
  }
}

interface Statement {
  readonly text: string;
  readonly values: readonly unknown[];
}

type Query = readonly [name: string, ask: (store: PostStore) => Promise<unknown>];

function queries({ ids, words }: Seeded, after: Position | undefined): Query[] {
  const list = (name: string, filter: Partial<PostFilter>): Query => [
    name,
    (store) => store.list({ limit: 20, drafts: false, ...filter }),
  ];
  const search = (name: string, kind: keyof Seeded['words']) =>
    list(`search for a ${name} word`, { limit: 100, search: words[kind][0] ?? '' });
  return [
    ['a post by its id', (store) => store.get(ids[0] ?? '', { drafts: false })],
    list('first page', {}),
    list(`page ${farPage}`, after ? { after } : {}),
    search('rare', 'rare'),
    search('medium', 'medium'),
    search('common', 'common'),
    list('a common tag', { tag: 'tag-1' }),
    list('a rare tag', { tag: 'tag-150' }),
    list('an author', { author: 'Author 100' }),
    ['the feeds', (store) => store.newest(50)],
  ];
}

/** The position after which the page starts. */
async function walkTo(page: number, store: PostStore): Promise<Position | undefined> {
  let after: Position | undefined;
  for (let number = 1; number < page; number += 1) {
    after = (await store.list({ limit: 20, drafts: false, ...(after && { after }) })).next;
  }
  return after;
}

/** The plan that the database uses for it: a prepared statement's own, which may be one for all values. */
async function planOf({ text, values }: Statement, client: postgres.Sql): Promise<string> {
  const [prepared] = await client<{ name: string }[]>`
    select name from pg_prepared_statements where statement = ${text}`;
  const explain = 'explain (analyze, costs off)';
  const rows = prepared
    ? await client.unsafe(`${explain} execute "${prepared.name}"(${values.map(literal).join(', ')})`)
    : await client.unsafe(`${explain} ${text}`, [...values] as string[]);
  return rows.map((row) => row['QUERY PLAN']).join('\n');
}

const literal = (value: unknown): string => `'${String(value).replaceAll("'", "''")}'`;
