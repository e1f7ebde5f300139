import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type Deployment, startDeployment } from '../support/deployment.js';
import { patience } from '../support/patience.js';

const poolSize = 4;

let deployment: Deployment;
/** Works on the same database, past the server that is tested. */
let operator: pg.Client;
beforeAll(async () => {
  deployment = await startDeployment({ workers: 0, variables: { DATABASE_POOL_SIZE: String(poolSize) } });
  operator = new pg.Client({ connectionString: deployment.stores.DATABASE_URL });
  await operator.connect();
});
afterAll(async () => {
  await operator.end();
  await deployment.stop();
});

const write = (json: object, headers: Record<string, string> = {}) =>
  deployment.blog('/blogs', { json, headers });

describe('connections to the database that are killed while posts are written', () => {
  /** Resolves when they have ended. */
  const kill = () =>
    operator.query(
      `SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity
       WHERE datname = current_database() AND pid <> pg_backend_pid()`,
    );
  /** The same while at least one is in the middle of its statement, which waits for a lock. */
  const killInStatement = async () => {
    await operator.query('BEGIN');
    await operator.query('LOCK TABLE posts IN EXCLUSIVE MODE');
    const waits = () => operator.query('SELECT 1 FROM pg_locks WHERE NOT granted');
    await vi.waitUntil(async () => (await waits()).rows.length > 0, patience);
    await kill();
    await operator.query('ROLLBACK');
  };
  const stored = async (tag: string) => {
    const { rows } = await operator.query('SELECT content FROM posts WHERE tags @> ARRAY[$1]', [tag]);
    return rows.map(({ content }) => content as string).sort();
  };
  const contents = Array.from({ length: 150 }, (_, place) => `Post ${place} ${'x'.repeat(5000)}`).sort();

  /** Sends one request for every content, eight at a time, while connections are killed; gives the statuses. */
  async function writeAll(send: (content: string) => Promise<Response>): Promise<Map<string, number>> {
    const statuses = new Map<string, number>();
    const waiting = contents.values();
    const client = async () => {
      for (const content of waiting) {
        const answer = await send(content);
        await answer.arrayBuffer();
        statuses.set(content, answer.status);
      }
    };
    let writing = true;
    const clients = Promise.all(Array.from({ length: 8 }, client)).finally(() => {
      writing = false;
    });
    await killInStatement();
    while (writing) {
      const before = statuses.size;
      await kill();
      await vi.waitUntil(() => !writing || statuses.size > before + 20, { ...patience, interval: 2 });
    }
    await clients;
    return statuses;
  }
  const withStatus = (statuses: Map<string, number>, wanted: number) =>
    [...statuses].filter(([, status]) => status === wanted).map(([content]) => content);

  it('cost those requests a 503, and leave exactly one post for each key, once they were sent again', async () => {
    const send = (content: string) =>
      write({ content, tags: ['keyed'] }, { 'Idempotency-Key': /\d+/.exec(content)?.[0] ?? '' });
    const statuses = await writeAll(send);
    const failed = withStatus(statuses, 503);
    expect(withStatus(statuses, 201).length + failed.length).toBe(contents.length);
    expect(failed.length).toBeGreaterThan(0);
    for (const content of failed) expect((await send(content)).status).toBe(201);
    expect(await stored('keyed')).toEqual(contents);
  });
});
