import pg from 'pg';
import { expect } from 'vitest';
import { createToken } from '../support/accounts.js';
import { profiles } from '../support/profiles.js';
import { storeOf } from '../support/stores.js';
import { openWireTo, type Wire } from '../support/wire.js';
import type { Books } from './support/books.js';
import { catalogue } from './support/catalogue.js';
import { eventually, expectCodes } from './support/expectations.js';

/** In front of the database alone. */
let wire: Wire;
const store = async () => {
  const opened = await openWireTo(storeOf('postgres').databaseUrl);
  wire = opened;
  return { ...storeOf('redis'), databaseUrl: opened.url, stop: opened.close };
};

/** Chats go on as ever while the database has its trouble. */
const expectChatUnaffected = async (books: Books): Promise<void> =>
  expectCodes(await Promise.all(Array.from({ length: 5 }, () => books.chat())), ['ok']);

/** Works on the deployment's database past its programs; ends with the case. */
async function openOperator({ deployment, release }: Books): Promise<pg.Client> {
  const client = new pg.Client({
    connectionString: deployment.stores.DATABASE_URL,
    application_name: 'operator',
  });
  await client.connect();
  release(() => client.end());
  return client;
}

const unavailable = { status: 503, code: 'database_unavailable' };

async function askBlog({ deployment }: Books, json?: unknown) {
  const answer = await deployment.blog('/blogs', { json });
  const { code } = (await answer.json()) as { code?: string };
  return { status: answer.status, code };
}

/** More than there are connections. */
const readAll = (books: Books) => Promise.all(Array.from({ length: 20 }, () => askBlog(books)));

catalogue({ variables: { ...profiles.plain, DATABASE_POOL_SIZE: '2' }, store }, (add) => {
  add(
    'B1 all connections ended while a post is written → it is refused, the next is stored, and none by half',
    {},
    async (books) => {
      const [operator, witness] = [await openOperator(books), await openOperator(books)];
      await witness.query('BEGIN; LOCK TABLE posts IN ACCESS EXCLUSIVE MODE');
      const writing = askBlog(books, { content: 'written in vain' });
      const others = `FROM pg_stat_activity WHERE datname = current_database() AND application_name <> 'operator'`;
      const waiting = `SELECT 1 ${others} AND wait_event_type = 'Lock'`;
      await eventually(async () => expect((await operator.query(waiting)).rowCount).toBe(1));
      await operator.query(`SELECT pg_terminate_backend(pid) ${others}`);
      await witness.query('ROLLBACK');
      expect(await writing).toEqual(unavailable);
      expect(await askBlog(books, { content: 'next' })).toMatchObject({ status: 201 });
      expect((await operator.query('SELECT content FROM posts')).rows).toEqual([{ content: 'next' }]);
      await expectChatUnaffected(books);
    },
  );

  add(
    'B3 every connection of the pool waits for a lock → reads are refused, chat goes on, and then reads do',
    {},
    async (books) => {
      const operator = await openOperator(books);
      await operator.query('BEGIN; LOCK TABLE posts IN ACCESS EXCLUSIVE MODE');
      // The lock is held until all are answered.
      const [answers] = await Promise.all([readAll(books), expectChatUnaffected(books)]);
      expect(answers).toEqual(answers.map(() => unavailable));
      await operator.query('ROLLBACK');
      expect(await askBlog(books)).toMatchObject({ status: 200 });
    },
  );

  add(
    'B2 the database stopped, then silent → reads are refused, chat goes on, and all is well without a restart',
    {},
    async (books) => {
      // Tokens for chat are checked without the database.
      const token = await createToken(books.deployment, 'chat');
      const expectOthersUnaffected = async () => {
        const [answers, { status }] = await Promise.all([
          readAll(books),
          token.ask(),
          expectChatUnaffected(books),
        ]);
        expect(answers).toEqual(answers.map(() => unavailable));
        expect(status).toBe(200);
      };
      const ready = async () => (await fetch(`${books.deployment.url}/readyz`)).status;
      await wire.cut();
      await expectOthersUnaffected();
      await wire.mend();
      await eventually(async () =>
        expect([await ready(), await askBlog(books)]).toMatchObject([200, { status: 200 }]),
      );
      wire.freeze();
      await expectOthersUnaffected();
      wire.thaw();
      await eventually(async () =>
        expect([await ready(), await askBlog(books)]).toMatchObject([200, { status: 200 }]),
      );
    },
  );
});
