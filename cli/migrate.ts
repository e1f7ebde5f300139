import { type Environment, parseConfig } from '../shared/config.js';
import { migrateQueueStore } from '../shared/queue.js';

/** `quillgate migrate`: safe to run at any time, by any number of processes at once. Throws `ConfigError`. */
export async function migrate(environment: Environment): Promise<void> {
  const config = parseConfig(environment, 'migrate');
  await migrateQueueStore(config);
  const where = config.REDIS_URL
    ? 'The queue lives in Redis, which has no schema.'
    : 'The schema is up to date.';
  process.stdout.write(`${where}\n`);
}
