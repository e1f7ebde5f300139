import { type Config, ConfigError } from '../shared/config.js';
import { createLog } from '../shared/log.js';
import { migrateQueueStore, openQueueStore, StoreDefect } from '../shared/queue.js';

const patienceMs = 5000;

/**
 * Brings the queue's store up to date and sees that it can be used, so that a wrong address is named here and the
 * programs do not wait for it for ever. Throws `ConfigError` when it is not the embedded one.
 */
export async function prepareQueueStore(config: Config, databaseUrl: string): Promise<void> {
  const complete = { ...config, DATABASE_URL: databaseUrl };
  try {
    await migrateQueueStore(complete);
    await checkQueueStore(complete);
  } catch (cause) {
    if (config.REDIS_URL) throw new ConfigError([`REDIS_URL: ${reasonOf(cause, 'no Redis answers there')}`]);
    if (config.DATABASE_URL)
      throw new ConfigError([`DATABASE_URL: ${reasonOf(cause, 'the database cannot be used')}`]);
    throw cause;
  }
}

async function checkQueueStore(config: Config): Promise<void> {
  const store = openQueueStore(config, createLog({ program: 'start', level: 'silent' }));
  try {
    if (!(await store.whenReady(AbortSignal.timeout(patienceMs)))) await store.check();
  } finally {
    await store.close();
  }
}

/** Messages of libraries can quote the address and its password; codes cannot. */
function reasonOf(error: unknown, words: string): string {
  if (error instanceof StoreDefect) return error.message;
  const first = error instanceof AggregateError ? error.errors[0] : error;
  const code = first instanceof Error && 'code' in first ? String(first.code) : undefined;
  return code && /^\w{1,40}$/.test(code) ? `${words} (${code})` : words;
}
