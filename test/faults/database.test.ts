import pg from 'pg';
import { expect, inject } from 'vitest';
import { createToken } from '../support/accounts.js';
import type { Deployment } from '../support/deployment.js';
import { openWireTo } from '../support/wire.js';
import { codeOf } from './support/balance.js';
import type { Books } from './support/books.js';
import { eventually } from './support/expectations.js';
import { fault } from './support/fault.js';

const queueIsElsewhere = inject('store').kind === 'redis';

/** Chats go on as ever while the database has its trouble; where the queue lives in it, they cannot. */
async function expectChatUnaffected(books: Books): Promise<void> {
  if (!queueIsElsewhere) return;
  for (let n = 0; n < 5; n += 1) {
    const reply = await books.chat();
    expect(codeOf(reply)).toBe('ok');
    expect(reply.tookMs).toBeLessThan(1000);
  }
}

/** Works on the deployment's database past its programs; ends with the case. */
async function openOperator(books: Books): Promise<pg.Client> {
  const connectionString = books.deployment.stores.DATABASE_URL;
  const client = new pg.Client({ connectionString, application_name: 'operator' });
  await client.connect();
  books.release(() => client.end());
  return client;
}

async function timedBlog({ blog }: Deployment, json?: unknown) {
  const startedAt = performance.now();
  const answer = await blog('/blogs', { json });
  const body = (await answer.json()) as { code?: string };
  return { status: answer.status, code: body.code, tookMs: performance.now() - startedAt };
}

const unavailable = { status: 503, code: 'database_unavailable' };

fault({ id: 'B1', injected: 'pg_terminate_backend for everyone while a post is written' }, async (books) => {
  const { blog } = await books.start();
  const [operator, witness] = [await openOperator(books), await openOperator(books)];
  await witness.query('BEGIN; LOCK TABLE posts IN ACCESS EXCLUSIVE MODE');
  const writing = timedBlog(books.deployment, { content: 'written in vain' });
  const others = `FROM pg_stat_activity WHERE datname = current_database() AND application_name <> 'operator'`;
  const waits = `SELECT 1 ${others} AND wait_event_type = 'Lock'`;
  await expect.poll(async () => (await operator.query(waits)).rowCount, { timeout: 2000 }).toBeGreaterThan(0);
  await operator.query(`SELECT pg_terminate_backend(pid) ${others}`);
  await witness.query('ROLLBACK');
  expect(await writing).toMatchObject(unavailable);
  expect((await blog('/blogs', { json: { content: 'next' } })).status).toBe(201);
  const { rows } = await operator.query('SELECT content FROM posts');
  expect(rows).toEqual([{ content: 'next' }]);
  await expectChatUnaffected(books);
  return 'that write 503, the next 201, no half row';
});

fault({ id: 'B2', timed: true, injected: 'PostgreSQL stopped, then silent' }, async (books) => {
  const store = inject('store');
  const wire = await openWireTo(store.databaseUrl);
  books.release(() => wire.close());
  await books.start({
    store: { ...store, url: queueIsElsewhere ? store.url : wire.url, databaseUrl: wire.url },
  });
  // Tokens for chat are checked without the database.
  const token = await createToken(books.deployment, 'chat');
  // Where the queue is in PostgreSQL the board has to have found it before that is away.
  await eventually(async () => expect(await books.jobs.unfinished()).toBe(0));
  const took: number[] = [];
  const meet = async () => {
    const answers = await Promise.all([
      ...Array.from({ length: 10 }, () => timedBlog(books.deployment)),
      expectChatUnaffected(books),
      token.ask().then(({ status }) => void expect(status).toBe(200)),
    ]);
    for (const answer of answers) {
      if (answer === undefined) continue;
      expect(answer).toMatchObject(unavailable);
      took.push(answer.tookMs);
    }
  };
  await wire.cut();
  await meet();
  await wire.mend();
  await untilWell(books);
  wire.freeze();
  await meet();
  wire.thaw();
  await untilWell(books);
  const slowest = Math.round(Math.max(...took));
  expect(slowest).toBeLessThan(4000);
  return `the blog 503 in ${slowest} ms at most, chat unaffected, well again without a restart`;
});

async function untilWell(books: Books): Promise<void> {
  const isWell = async () => (await fetch(`${books.deployment.url}/readyz`)).status;
  await expect.poll(isWell, { timeout: 15_000 }).toBe(200);
  expect((await timedBlog(books.deployment)).status).toBe(200);
}

fault(
  { id: 'B3', timed: true, injected: 'every connection of the pool is waiting for a lock' },
  async (books) => {
    await books.start({ variables: { DATABASE_POOL_SIZE: '2' } });
    const operator = await openOperator(books);
    await operator.query('BEGIN; LOCK TABLE posts IN ACCESS EXCLUSIVE MODE');
    const [answers] = await Promise.all([
      Promise.all(Array.from({ length: 20 }, () => timedBlog(books.deployment))),
      expectChatUnaffected(books),
    ]);
    await operator.query('ROLLBACK');
    for (const answer of answers) expect(answer).toMatchObject(unavailable);
    const slowest = Math.round(Math.max(...answers.map(({ tookMs }) => tookMs)));
    // A connection within 0.8 s, and 2 s for the statement.
    expect(slowest).toBeLessThan(800 + 2000 + 700);
    expect((await timedBlog(books.deployment)).status).toBe(200);
    return `503 in ${slowest} ms at most, chat unaffected, then 200`;
  },
);
