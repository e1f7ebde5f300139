import { codeOf, troubleOf } from '../db/database-trouble.js';
import { migrateDatabase } from '../db/migrate.js';
import { type Environment, parseConfig } from '../shared/config.js';
import { CannotStart } from '../shared/program.js';
import { migrateQueueStore } from '../shared/queue.js';

/**
 * `quillgate migrate`: safe to run at any time, by any number of processes at once. Throws `ConfigError`, and
 * `CannotStart` when the database cannot be reached or refuses.
 */
export async function migrate(environment: Environment): Promise<void> {
  const config = parseConfig(environment, 'migrate');
  if (config.DATABASE_URL !== undefined)
    await migrateDatabase(config.DATABASE_URL, { onWait }).catch((cause: unknown) => {
      throw new CannotStart(`The schema cannot be brought up to date: ${troubleOf(cause)}.`, { cause });
    });
  await migrateQueueStore(config).catch((cause: unknown) => {
    const words = "The schema of the queue's store cannot be brought up to date";
    throw new CannotStart(`${words} (${codeOf(cause) ?? 'for no known reason'}).`, { cause });
  });
  process.stdout.write('The schema is up to date.\n');
}

const onWait = () => void process.stderr.write('Another migration is running; waiting until it ends.\n');
