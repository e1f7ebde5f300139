import { type Environment, parseConfig } from '../shared/config.js';
import { migrateQueueStore } from '../shared/queue.js';

/** `quillgate migrate`: safe to run at any time, by any number of processes at once. Throws `ConfigError`. */
export async function migrate(environment: Environment): Promise<void> {
  const config = parseConfig(environment, 'migrate');
  await migrateQueueStore(config);
  process.stdout.write('The schema is up to date.\n');
}
