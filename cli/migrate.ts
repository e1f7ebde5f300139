import { type Config, type Environment, parseConfig } from '../shared/config.js';
import { CannotStart } from '../shared/program.js';

/**
 * `quillgate migrate`: safe to run at any time, by any number of processes at once. Throws `ConfigError`, and
 * `CannotStart` when the database cannot be reached or refuses. What it needs is loaded once the configuration is known
 * to be good: loading takes longer.
 */
export async function migrate(environment: Environment): Promise<void> {
  const config = parseConfig(environment, 'migrate');
  await migrateBlog(config);
  await migrateQueue(config);
  process.stdout.write('The schema is up to date.\n');
}

async function migrateBlog({ DATABASE_URL }: Config): Promise<void> {
  if (DATABASE_URL === undefined) return;
  const { troubleOf } = await import('../db/database-trouble.js');
  const { migrateDatabase } = await import('../db/migrate.js');
  await migrateDatabase(DATABASE_URL, { onWait }).catch((cause: unknown) => {
    throw new CannotStart(`The schema cannot be brought up to date: ${troubleOf(cause)}.`, { cause });
  });
}

async function migrateQueue(config: Config): Promise<void> {
  const { codeOf } = await import('../db/database-trouble.js');
  const { migrateQueueStore } = await import('../shared/queue-stores/open.js');
  await migrateQueueStore(config).catch((cause: unknown) => {
    const words = "The schema of the queue's store cannot be brought up to date";
    throw new CannotStart(`${words} (${codeOf(cause) ?? 'for no known reason'}).`, { cause });
  });
}

const onWait = () => void process.stderr.write('Another migration is running; waiting until it ends.\n');
