import { codeOf, errorOf } from '../db/database/errors.js';
import { migrateDatabase } from '../db/database/migrate.js';
import { type Config, ConfigError } from '../shared/config/config.js';
import { Misconfiguration, reasonOf } from '../shared/queue/queue-store.js';
import { migrateQueueStore, openQueueStore } from '../shared/queue/stores/open.js';
import { createLog } from '../shared/runtime/log.js';
import { isCertificateError } from '../shared/urls/store-certificates.js';

const timeoutMs = 5000;

/**
 * Migrates the database and the queue's store and checks that they can be used, so that a wrong address is reported
 * here instead of the programs waiting for it for ever. Throws `ConfigError` for stores that the configuration names.
 */
export async function prepareStores(config: Config, databaseUrl: string): Promise<void> {
  const complete = { ...config, DATABASE_URL: databaseUrl };
  const database = config.DATABASE_URL && 'DATABASE_URL';
  await named({ variable: database, reasonOf: errorOf, work: migrateDatabase(databaseUrl) });
  const queue = config.REDIS_URL
    ? { variable: 'REDIS_URL', reasonOf: reasonOr('no Redis answers there') }
    : { variable: database, reasonOf: reasonOr('the queue cannot be kept there') };
  await named({ ...queue, work: prepareQueueStore(complete) });
}

async function prepareQueueStore(config: Config): Promise<void> {
  await migrateQueueStore(config);
  const store = openQueueStore(config, createLog({ program: 'start', level: 'silent' }));
  try {
    if (!(await store.whenReady(AbortSignal.timeout(timeoutMs)))) await store.check();
  } finally {
    await store.close();
  }
}

interface Named {
  variable: string | undefined;
  /** Describes a failure: messages of libraries can quote the address and its password. */
  reasonOf: (error: unknown) => string;
  work: Promise<unknown>;
}

/** Names the variable that a failure comes from; without one, the embedded store failed, and its error is passed on. */
async function named({ variable, reasonOf, work }: Named): Promise<void> {
  try {
    await work;
  } catch (cause) {
    throw variable ? new ConfigError([`${variable}: ${reasonOf(cause)}`]) : cause;
  }
}

const reasonOr =
  (words: string) =>
  (error: unknown): string => {
    if (error instanceof Misconfiguration) return error.message;
    const code = codeOf(error);
    if (code !== undefined && isCertificateError(code)) return reasonOf(error);
    return code === undefined ? words : `${words} (${code})`;
  };
