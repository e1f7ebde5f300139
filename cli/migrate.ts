import { migrateDatabase } from '../db/migrate.js';
import { type Environment, parseConfig } from '../shared/config.js';
import { migrateQueueStore } from '../shared/queue.js';

/** `quillgate migrate`: safe to run at any time, by any number of processes at once. Throws `ConfigError`. */
export async function migrate(environment: Environment): Promise<void> {
  const config = parseConfig(environment, 'migrate');
  if (config.DATABASE_URL !== undefined) await migrateDatabase(config.DATABASE_URL);
  await migrateQueueStore(config);
  process.stdout.write('The schema is up to date.\n');
}
