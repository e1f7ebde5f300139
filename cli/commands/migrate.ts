import type { SchemaAge } from '../../db/database/migrate.js';
import { type Config, type Environment, parseConfig } from '../../shared/config/config.js';
import { StartupError } from '../../shared/runtime/program.js';

/**
 * `quillgate migrate`: safe at any time, also by several processes at once. Throws `ConfigError` before it loads the
 * rest, which takes longer, and `StartupError` when a store cannot be reached or refuses.
 */
export async function migrate(
  environment: Environment,
  times: { noticeAfterMs?: number } = {},
): Promise<void> {
  const config = parseConfig(environment, 'migrate');
  const age = await migrateBlog(config, times);
  await migrateQueue(config);
  process.stdout.write(age === 'newer' ? newerWords : 'The schema is up to date.\n');
}

const newerWords = 'A newer release has migrated this database already; this one works with it as it is.\n';

async function migrateBlog({ DATABASE_URL }: Config, times: object): Promise<SchemaAge | undefined> {
  if (DATABASE_URL === undefined) return undefined;
  const { errorOf } = await import('../../db/database/errors.js');
  const { migrateDatabase } = await import('../../db/database/migrate.js');
  return migrateDatabase(DATABASE_URL, { onWait, ...times }).catch((cause: unknown) => {
    throw new StartupError(`The schema cannot be brought up to date: ${errorOf(cause)}.`, { cause });
  });
}

async function migrateQueue(config: Config): Promise<void> {
  const { codeOf } = await import('../../db/database/errors.js');
  const { Misconfiguration } = await import('../../shared/queue/queue-store.js');
  const { migrateQueueStore } = await import('../../shared/queue/stores/open.js');
  await migrateQueueStore(config).catch((cause: unknown) => {
    const words = "The schema of the queue's store cannot be brought up to date";
    if (cause instanceof Misconfiguration) throw new StartupError(`${words}: ${cause.message}.`, { cause });
    throw new StartupError(`${words} (${codeOf(cause) ?? 'for no known reason'}).`, { cause });
  });
}

const onWait = () => void process.stderr.write('Another migration is running; waiting until it ends.\n');
