import { type Config, type Environment, namesSet, parseConfig } from '../../shared/config/config.js';
import { hasCredentials, isSimulated } from '../../shared/config/provider-credentials.js';
import { type ProviderId, providerIds } from '../../shared/contracts/contract.js';
import type { Fleet } from '../../shared/contracts/fleet-contract.js';
import { StartupError } from '../../shared/runtime/program.js';
import { findDatabase, nothingRuns, openForCommand, patienceMs, readNames } from '../database.js';
import { hearFleet, type ListenTimes } from '../fleet.js';
import { printable, renderFleet } from '../output/fleet-tables.js';

/** How the database is; `detail` says more. */
interface DatabaseStatus {
  status: 'ok' | 'failing' | 'not configured';
  detail?: string | undefined;
}

interface StatusOptions extends ListenTimes {
  /** For workers that have not been heard by then, in milliseconds. */
  maxListenMs?: number;
  providers?: string;
  json?: boolean;
}

/** Every worker has sent two heartbeats in this time. */
const defaultListenMs = 2500;
/** Time between two looks for workers that are missing, in milliseconds. */
const lookEveryMs = 250;

/**
 * `quillgate status`: one look at the database, the queue's store and every worker, without an API process. Where a
 * provider has no worker that takes jobs, it looks again for ten seconds before it says so. The exit code is 0 when
 * every configured provider has one, else 1. Throws `StartupError` for bad options,
 * and where nothing runs: without a configured store, and when the database of `npm start` does not answer.
 */
export async function printStatus(
  environment: Environment,
  { listenMs = defaultListenMs, maxListenMs = patienceMs, reachMs, ...options }: StatusOptions,
): Promise<void> {
  const config = parseConfig(environment, 'command');
  const expected = expectedProviders(config, options.providers);
  const [database, fleet] = await Promise.all([
    checkDatabase(config),
    hearFleet(config, { listenMs, reachMs }, async ({ state, listen }) => {
      let fleet = await state.read();
      for (
        let heardMs = listenMs;
        heardMs < maxListenMs && fleet.queue.status === 'ok';
        heardMs += lookEveryMs
      ) {
        if (unservedIn(fleet, expected).length === 0) break;
        await listen(lookEveryMs);
        fleet = await state.read();
      }
      return fleet;
    }),
  ]);
  const isOwn = config.DATABASE_URL === undefined && config.REDIS_URL === undefined;
  if (isOwn && database.status === 'failing' && !options.json) throw new StartupError(nothingRuns(config));
  const unserved = unservedIn(fleet, expected);
  if (options.json) {
    process.stdout.write(`${JSON.stringify({ ...fleet, database, expected, unserved }, null, 2)}\n`);
  } else {
    process.stdout.write(`${renderStores(database, fleet)}\n${renderFleet(fleet, Date.now())}`);
    if (unserved.length > 0)
      process.stderr.write(`Not served, of ${expected.join(', ')}: ${unserved.join(', ')}.\n`);
  }
  if (unserved.length > 0) process.exitCode = 1;
}

const unservedIn = ({ providers }: Fleet, expected: readonly ProviderId[]): ProviderId[] =>
  expected.filter(
    (id) =>
      !providers.some(({ provider, state }) => provider === id && ['serving', 'probing'].includes(state)),
  );

/** A worker's machine need not know of a database. */
async function checkDatabase(config: Config): Promise<DatabaseStatus> {
  const url = findUrl(config);
  if (url === undefined) return { status: 'not configured' };
  const database = openForCommand(url);
  try {
    const results = Object.values(await database.check());
    const failing = results.find(({ status }) => status === 'failing');
    const detail = (failing ?? results.find((result) => 'detail' in result))?.detail;
    return { status: failing ? 'failing' : 'ok', detail };
  } finally {
    await database.close();
  }
}

function findUrl(config: Config): string | undefined {
  try {
    return findDatabase(config);
  } catch (error) {
    // Without Redis it is where the queue lives.
    if (error instanceof StartupError && config.REDIS_URL !== undefined) return undefined;
    throw error;
  }
}

/**
 * The providers to be served: the given list, else those that this environment has credentials for, or that the
 * simulator plays for it. Where it has none at all, as beside `npm start`, all that a worker would run. Throws
 * `StartupError` for unknown names.
 */
export function expectedProviders(config: Config, given: string | undefined): ProviderId[] {
  if (given !== undefined)
    return readNames(given.split(','), providerIds, '--providers must be a comma list of');
  const names = namesSet(config);
  const { WORKER_PROVIDERS: ids, REAL_PROVIDERS: real = [] } = config;
  const configured = ids.filter(
    (id) => real.includes(id) || hasCredentials(names, id) || isSimulated(names, id),
  );
  return configured.length > 0 ? configured : [...ids];
}

function renderStores(database: DatabaseStatus, { queue, release }: Fleet): string {
  const withDetail = (status: string, detail?: string) =>
    detail ? `${status}: ${printable(detail)}` : status;
  return [
    `release   ${release} (of this command)`,
    `database  ${withDetail(database.status, database.detail)}`,
    `queue     ${withDetail(`${queue.status} (${queue.store})`, queue.detail)}`,
    '',
  ].join('\n');
}
