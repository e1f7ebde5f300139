import postgres from 'postgres';
import { expect, vi } from 'vitest';
import { openDatabase } from '../../db/database/client.js';
import type { PostFields } from '../../db/posts/post-creation.js';
import { PostStore } from '../../db/posts/post-store.js';
import { generousLimits, startTestDatabase } from '../support/database.js';
import { patience } from '../support/patience.js';
import { waitingLocks } from '../support/postgres-server.js';
import { createRecordingLog } from '../support/recording-log.js';

/** How many things `atOnce` can have in the database at the same moment. */
export const parallel = 20;

/** The posts of one database as two API processes see them, each with connections of its own. */
export interface PostStores {
  store: PostStore;
  otherStore: PostStore;
  /** Does something so many times at once, by turns in the two processes. */
  atOnce<T>(times: number, act: (store: PostStore) => Promise<T>): Promise<T[]>;
  /** Does something while another transaction takes a slug, which ends when ten statements wait for it. */
  whileTaking<T>(slug: string, act: () => Promise<T>): Promise<T>;
  stop(): Promise<void>;
}

/** Starts a database of its own for the stores. */
export async function openPostStores(): Promise<PostStores> {
  const server = await startTestDatabase();
  const { log } = createRecordingLog();
  const open = () => openDatabase({ url: server.url, poolSize: parallel / 2, log, ...generousLimits });
  const databases = [open(), open()] as const;
  const [store, otherStore] = [new PostStore(databases[0]), new PostStore(databases[1])];
  return {
    store,
    otherStore,
    atOnce: (times, act) =>
      Promise.all(Array.from({ length: times }, (_, turn) => act(turn % 2 ? store : otherStore))),
    whileTaking: (slug, act) => whileTaking({ url: server.url, slug, act }),
    stop: async () => {
      await Promise.all(databases.map((database) => database.close()));
      await server.stop();
    },
  };
}

interface Taking<T> {
  url: string;
  slug: string;
  act: () => Promise<T>;
}

async function whileTaking<T>({ url, slug, act }: Taking<T>): Promise<T> {
  const client = postgres(url, { max: 1 });
  const { acting } = await client.begin(async (transaction) => {
    await transaction`
      insert into posts (id, content, author, tags, slug, status)
      values (gen_random_uuid(), 'Text', 'eve', '{}', ${slug}, 'draft')`;
    const acting = act();
    const waiting = () => transaction.unsafe(waitingLocks);
    await vi.waitFor(async () => expect((await waiting()).length).toBeGreaterThanOrEqual(10), {
      ...patience,
      timeout: generousLimits.answerMs / 2,
    });
    return { acting };
  });
  await client.end();
  return acting;
}

/** The fields of a post: the least, unless more are given. */
export const fields = (some: Partial<PostFields> = {}): PostFields => ({
  content: 'Text',
  title: null,
  author: 'ada',
  tags: [],
  slug: undefined,
  status: 'published',
  ...some,
});

/** An error that is a `Failure` with this code. */
export const failure = (code: string) => expect.objectContaining({ name: 'Failure', code });
