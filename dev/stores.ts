import { migrateDatabase } from '../db/migrate.js';
import { type Config, ConfigError } from '../shared/config.js';
import { createLog } from '../shared/log.js';
import { migrateQueueStore, openQueueStore, StoreDefect } from '../shared/queue.js';

const patienceMs = 5000;

/**
 * Brings the database and the queue's store up to date and sees that they can be used, so that a wrong address is
 * named here and the programs do not wait for it for ever. Throws `ConfigError` for what the configuration names.
 */
export async function prepareStores(config: Config, databaseUrl: string): Promise<void> {
  const complete = { ...config, DATABASE_URL: databaseUrl };
  const database = config.DATABASE_URL && 'DATABASE_URL: the database cannot be used';
  await named(database, migrateDatabase(databaseUrl));
  await named(config.REDIS_URL ? 'REDIS_URL: no Redis answers there' : database, prepareQueueStore(complete));
}

async function prepareQueueStore(config: Config): Promise<void> {
  await migrateQueueStore(config);
  const store = openQueueStore(config, createLog({ program: 'start', level: 'silent' }));
  try {
    if (!(await store.whenReady(AbortSignal.timeout(patienceMs)))) await store.check();
  } finally {
    await store.close();
  }
}

/** Says which variable a failure comes from; without one it is the embedded part's, and passed on as it is. */
async function named(words: string | undefined, work: Promise<void>): Promise<void> {
  try {
    await work;
  } catch (cause) {
    throw words === undefined ? cause : new ConfigError([reasonOf(cause, words)]);
  }
}

/** Messages of libraries can quote the address and its password; codes cannot. */
function reasonOf(error: unknown, words: string): string {
  if (error instanceof StoreDefect) return words.replace(/:.*/, `: ${error.message}`);
  const first = error instanceof AggregateError ? error.errors[0] : error;
  const code = first instanceof Error && 'code' in first ? String(first.code) : undefined;
  return code && /^\w{1,40}$/.test(code) ? `${words} (${code})` : words;
}
