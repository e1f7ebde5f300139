import { createHash, randomBytes } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { createTokenStore } from '../../db/access/tokens.js';
import { type Database, openDatabase } from '../../db/database/client.js';
import type { PostFields } from '../../db/posts/post-creation.js';
import { PostStore } from '../../db/posts/post-store.js';
import { Failure } from '../../shared/failures.js';
import { startTestDatabase, type TestDatabase } from '../support/database.js';
import { userNamed } from '../support/identities.js';
import { withLag } from '../support/lateness.js';
import { patience } from '../support/patience.js';
import { createRecordingLog } from '../support/recording-log.js';

/** As promised to clients. */
const promisedMs = 4000;

let server: TestDatabase;
let database: Database;
/** Hold locks, each in a session of its own. */
let holders: Record<'tokens' | 'posts' | 'next', pg.Client>;
const secretHash = randomBytes(32);

beforeAll(async () => {
  server = await startTestDatabase();
  database = openDatabase({ url: server.url, poolSize: 2, log: createRecordingLog().log });
  holders = {
    tokens: new pg.Client({ connectionString: server.url }),
    posts: new pg.Client({ connectionString: server.url }),
    next: new pg.Client({ connectionString: server.url }),
  };
  await Promise.all(Object.values(holders).map((holder) => holder.connect()));
  const token = { owner: 'Wanda', scopes: ['blogs:write' as const], expiresAt: undefined, secretHash };
  await createTokenStore(database).create(token);
});

afterAll(async () => {
  await Promise.all(Object.values(holders).map((holder) => holder.end()));
  await database.close();
  await server.stop();
});

const lock = (table: 'tokens' | 'posts') =>
  holders[table].query(`begin; lock table ${table} in access exclusive mode`);
const release = (table: 'tokens' | 'posts') => holders[table].query('rollback');
const releaseAfter = (table: 'tokens' | 'posts', seconds: number) =>
  holders[table].query(`select pg_sleep(${seconds}); rollback`);

const fields: PostFields = {
  content: 'x',
  title: null,
  author: 'Wanda',
  tags: [],
  slug: undefined,
  status: 'published',
};

/** The statements of a request that writes; its end, its milliseconds, and the machine's lateness. */
async function write(key?: string): Promise<{ end: string; ms: number; lagMs: number }> {
  const { result, lagMs } = await withLag(() => writeOnce(key));
  return { ...result, lagMs };
}

async function writeOnce(key?: string): Promise<{ end: string; ms: number }> {
  const startedAt = performance.now();
  const hash = createHash('sha256').update('x').digest();
  try {
    await createTokenStore(database).find(secretHash);
    await new PostStore(database).create(
      fields,
      key === undefined ? undefined : { user: userNamed('Wanda'), key, hash },
    );
    return { end: 'written', ms: performance.now() - startedAt };
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return { end: error.code, ms: performance.now() - startedAt };
  }
}

describe('a request that writes', () => {
  beforeEach(async () => {
    expect((await write()).end).toBe('written');
  });

  it('fails in time when its token cannot be looked up', async () => {
    await lock('tokens');
    const { end, ms, lagMs } = await write();
    await release('tokens');

    expect(end).toBe('database_unavailable');
    // So that a write has its time left.
    expect(ms).toBeLessThan(1200 + lagMs);
  });

  it('fails in time when first its token and then the post has to wait', async () => {
    await Promise.all([lock('tokens'), lock('posts')]);
    const released = releaseAfter('tokens', 0.5);
    const requests = await Promise.all(Array.from({ length: 6 }, () => write()));
    await Promise.all([released, release('posts')]);

    expect(new Set(requests.map(({ end }) => end))).toEqual(new Set(['database_unavailable']));
    expect(Math.max(...requests.map(({ ms }) => ms))).toBeGreaterThan(2000);
    for (const { ms, lagMs } of requests) expect(ms).toBeLessThan(promisedMs + lagMs);
  });

  it('fails in time when every statement of several waits for as long as it may', async () => {
    await write('key');
    await Promise.all([lock('tokens'), lock('posts')]);
    const request = write('key');
    const released = [releaseAfter('tokens', 0.5), releaseAfter('posts', 1.5)];
    await vi.waitUntil(async () => (await holders.next.query(writeWaits)).rows.length > 0, patience);
    // Granted as soon as that write has been: then the first post of this key is looked for, and waits too.
    const locked = holders.next.query('begin; lock table posts in access exclusive mode');
    const { end, ms, lagMs } = await request;
    await Promise.all([...released, locked.then(() => holders.next.query('rollback'))]);

    expect(end).toBe('database_unavailable');
    expect(ms).toBeGreaterThan(3000);
    expect(ms).toBeLessThan(promisedMs + lagMs);
  });
});

const writeWaits = `select 1 from pg_locks where not granted and relation = 'posts'::regclass
  and database = (select oid from pg_database where datname = current_database())`;
