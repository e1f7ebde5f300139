import { v7 as uuidv7 } from 'uuid';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { NamedPost } from '../../../cli/import/import-identities.js';
import { storePosts } from '../../../cli/import/import-run.js';
import { type Database, openDatabase } from '../../../db/database/client.js';
import { sql } from '../../../db/database/drizzle.js';
import { createPostImport, type PostImport } from '../../../db/posts/post-import.js';
import { plant } from '../../support/folders.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { openWireTo } from '../../support/wire.js';
import { openPosts } from '../post-commands.js';

const { database, environment, refusalOf } = await openPosts({ poolSize: 8 });

const makePosts = (count: number): NamedPost[] =>
  Array.from({ length: count }, (_, number) => ({
    name: `${number}.md`,
    post: {
      ...{ id: uuidv7(), slug: `post-${number}`, title: null, content: 'text', tags: [] },
      ...{ author: undefined, defaultAuthor: 'blog', status: 'published', version: undefined },
      ...{ publishedAt: undefined, createdAt: undefined, updatedAt: undefined, source: undefined },
    },
  }));

const store = (
  posts: readonly NamedPost[],
  { from = database, onDone = () => undefined }: { from?: Database; onDone?: () => void } = {},
) =>
  storePosts({
    transfer: countingStores(from, onDone),
    posts,
    isAvailable: async () => (await from.check()).database.status === 'ok',
  });

/** Calls back after each post that was stored, or was not. */
function countingStores(from: Database, onDone: () => void): PostImport {
  const transfer = createPostImport(from);
  return { ...transfer, store: (...post) => transfer.store(...post).finally(onDone) };
}

/** Lets every new post whose slug is like this one meet what the SQL does. */
async function haunt(slug: string, statement: string): Promise<void> {
  const run = (text: string) => database.run((db) => db.execute(sql.raw(text)));
  await run(`create function haunt() returns trigger language plpgsql as
    $$ begin if new.slug like '${slug}' then ${statement}; end if; return new; end $$`);
  await run('create trigger haunt before insert on posts for each row execute function haunt()');
  onTestFinished(async () => {
    await run('drop function haunt cascade');
  });
}

describe('storePosts', () => {
  it.each([
    ["raise exception 'canary' using errcode = '57014'", ['3.md: the database does not take it (57014)'], []],
    ['perform pg_terminate_backend(pg_backend_pid())', [], ['3.md']],
  ])('a post that meets %s -> is named, and the others are stored', async (trouble, refused, uncertain) => {
    await haunt('post-3', trouble);
    const { counts, ...others } = await store(makePosts(30));
    expect(others).toEqual({ refused, uncertain, untried: 0 });
    expect(counts.created).toBe(29);
  });

  it('many posts that meet trouble -> stops', async () => {
    await haunt('post-%', "raise exception 'canary' using errcode = '53100'");
    const { refused, untried } = await store(makePosts(200));
    expect(refused.length).toBeGreaterThanOrEqual(20);
    expect(refused.length).toBeLessThan(40);
    expect(refused.length + untried).toBe(200);
  });

  it('every connection lost in the middle -> knows what was stored, and a repeat does the rest', async () => {
    const posts = makePosts(200);
    const other = openDatabase({ url: environment.DATABASE_URL, poolSize: 1, log: createRecordingLog().log });
    onTestFinished(() => other.close());
    const terminate = sql`
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`;
    let done = 0;
    let ended: Promise<unknown> | undefined;
    const onDone = () => {
      if (++done === 20) ended = other.run((db) => db.execute(terminate));
    };
    const { counts, refused, uncertain, untried } = await store(posts, { onDone });
    await ended;
    expect(uncertain.length).toBeGreaterThan(0);
    expect(refused).toEqual([]);
    expect(counts.created + uncertain.length + untried).toBe(200);
    const { length: stored } = await other.run((db) => db.execute(sql`select from posts`));
    expect(stored).toBeGreaterThanOrEqual(counts.created);
    expect(stored).toBeLessThanOrEqual(counts.created + uncertain.length);

    const again = await store(posts, { from: other });
    expect(again.counts).toEqual({ created: 200 - stored, changed: 0, unchanged: stored });
  });

  it('a database that is gone -> stops', async () => {
    const wire = await openWireTo(environment.DATABASE_URL);
    onTestFinished(wire.close);
    const { log } = createRecordingLog();
    const from = openDatabase({ url: wire.url, poolSize: 8, log });
    onTestFinished(() => from.close());
    let done = 0;
    const onDone = () => {
      if (++done === 20) void wire.cut();
    };
    const { counts, refused, uncertain, untried } = await store(makePosts(200), { from, onDone });
    expect(counts.created).toBeGreaterThanOrEqual(10);
    expect(refused.length + uncertain.length).toBeLessThanOrEqual(40);
    expect(counts.created + refused.length + uncertain.length + untried).toBe(200);
    expect(untried).toBeGreaterThan(0);
  });
});

describe('importPosts', () => {
  it('a file that fails -> which it was, and what was stored', async () => {
    await haunt('bad-%', "raise exception 'canary' using errcode = '57014'");
    const folder = plant({ 'bad-one.md': 'text', 'good.md': 'text', 'other.md': 'text' });
    expect(await refusalOf(folder)).toBe(
      [
        'Not everything was imported: 2 created, 0 changed, 0 unchanged, 1 refused, 0 uncertain, 0 not tried.',
        '  bad-one.md: the database does not take it (57014)',
        'Import again when this is mended: what is stored already stays as it is.',
      ].join('\n'),
    );
  });
});
