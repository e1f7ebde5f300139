import { createHash, randomBytes } from 'node:crypto';
import pg from 'pg';
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { createTokenStore } from '../../db/access/tokens.js';
import { openDatabase } from '../../db/database/client.js';
import { sql } from '../../db/database/drizzle.js';
import type { PostFields } from '../../db/posts/post-creation.js';
import { PostStore } from '../../db/posts/post-store.js';
import { generousLimits, startTestDatabase } from '../support/database.js';
import { userNamed } from '../support/identities.js';
import { patience } from '../support/patience.js';
import { createRecordingLog } from '../support/recording-log.js';

/** The clock of what statements share. */
let nowMs = 0;
const server = await startTestDatabase();
afterAll(server.stop);
const database = openDatabase({
  ...{ url: server.url, poolSize: 2, log: createRecordingLog().log },
  ...{ ...generousLimits, firstStepMs: 100, now: () => nowMs },
});
afterAll(() => database.close());
/** Holds locks. */
const holder = new pg.Client({ connectionString: server.url });
await holder.connect();
afterAll(() => holder.end());

/** Locks a table; gives what releases it, which the end of the test does as well. */
async function lock(table: string): Promise<() => Promise<unknown>> {
  await holder.query(`begin; lock table ${table} in access exclusive mode`);
  const release = () => holder.query('rollback');
  onTestFinished(async () => void (await release()));
  return release;
}

const fields: PostFields = {
  ...{ content: 'x', title: null, author: 'Wanda', tags: [], slug: undefined, status: 'published' },
};
const request = { user: userNamed('Wanda'), key: 'key', hash: createHash('sha256').update('x').digest() };
const waits = `select from pg_locks where not granted and relation = 'posts'::regclass
  and database = (select oid from pg_database where datname = current_database())`;

describe('a request that writes', () => {
  it('a token that cannot be looked up -> is given up before other statements would be, for the write to follow', async () => {
    const release = await lock('tokens');
    const ended = vi.fn();
    const other = database.run((db) => db.execute(sql`select from tokens`)).finally(ended);
    const looking = createTokenStore(database).find(randomBytes(32));
    await expect(looking).rejects.toMatchObject({ code: 'database_unavailable' });
    expect(ended).not.toHaveBeenCalled();
    await release();
    await other;
  });

  it('a post whose first statement has taken the time of all -> the next one is not sent', async () => {
    const store = new PostStore(database);
    await store.create(fields, request);
    for (const spentMs of [0, generousLimits.answerMs]) {
      const release = await lock('posts');
      // The post of this key is there already, which takes a second statement to say.
      const again = store.create(fields, request).then(
        () => 'answered',
        ({ code }) => code,
      );
      await vi.waitUntil(async () => (await holder.query(waits)).rowCount === 1, patience);
      nowMs += spentMs;
      await release();
      expect(await again).toBe(spentMs === 0 ? 'answered' : 'database_unavailable');
    }
  });
});
