import { repriceCalls } from '../../db/ledger/reprice.js';
import { forgetUser } from '../../db/ledger/retention.js';
import { daysOf, readUsage, toFlatRow, type UsageKey, usageKeys } from '../../db/ledger/usage.js';
import type { Environment } from '../../shared/config/config.js';
import { foreignProviders } from '../../shared/config/pool-config.js';
import { type ProviderId, providerIds } from '../../shared/contracts/contract.js';
import type { UsageRow } from '../../shared/contracts/ledger.js';
import { toCsv } from '../../shared/csv.js';
import { Failure } from '../../shared/failures.js';
import { openPrices } from '../../shared/prices/prices.js';
import { StartupError } from '../../shared/runtime/program.js';
import { day } from '../../shared/validation.js';
import { actor, readNames, withDatabase } from '../database.js';
import { printable, printList } from '../output/fleet-tables.js';

interface UsageOptions {
  from?: string;
  to?: string;
  /** A comma list of keys. */
  by: string;
  user?: string;
  token?: string;
  provider?: string;
  model?: string;
  api?: string;
  session?: string;
  csv?: boolean;
  json?: boolean;
}

/** `quillgate usage`: sums of the calls, and their total last. Throws `StartupError` for options that cannot be. */
export async function printUsage(environment: Environment, options: UsageOptions): Promise<void> {
  const { csv, json, from, to, provider, ...filter } = options;
  const named = options.by.split(',');
  const by = readNames(named, usageKeys, '--by must be one or two of').sort(
    (a, b) => named.indexOf(a) - named.indexOf(b),
  );
  if (by.length > 2) throw new StartupError('--by must be one or two keys.');
  const asked = {
    ...filter,
    ...daysOf({ from: checkDay('from', from), to: checkDay('to', to) }),
    by,
    ...(provider && { provider: readNames([provider], providerIds, '--provider must be one of')[0] }),
  };
  const usage = await withDatabase(environment, (database) =>
    readUsage(database, asked).catch((error: unknown) => {
      const [wrong] = (error instanceof Failure && error.facts.errors) || [];
      throw wrong ? new StartupError(`--${wrong.pointer} ${wrong.detail}.`) : error;
    }),
  );
  const { rows, total, unknownModels } = usage;
  if (json) process.stdout.write(`${JSON.stringify(usage, null, 2)}\n`);
  else if (csv) process.stdout.write(toCsv(rows.map(toFlatRow)));
  else printTable([...rows, ...(rows.length > 0 ? [total] : [])], by);
  if (json || csv || unknownModels.length === 0) return;
  const lines = unknownModels.map(({ line }) => printable(line));
  process.stderr.write(
    `These have no known price; lines for PRICES_FILE, and then usage reprice:\n${lines.join('\n')}\n`,
  );
}

/** In dollars; `unknown` where no call has a known cost, and `at least` where some have none, or may cost more. */
function describeCost({ cost, estimated, lost, unpriced }: UsageRow): string {
  if (cost === null) return 'unknown';
  return `${estimated + lost + unpriced > 0 ? 'at least ' : ''}${cost.toFixed(4)}`;
}

const printTable = (rows: readonly UsageRow[], by: readonly UsageKey[]): void =>
  printList(rows, {
    json: false,
    none: 'Nothing was spent in these days.',
    columns: {
      ...Object.fromEntries(
        by.map((key, n) => [key, (row: UsageRow) => row[key] ?? (n === 0 ? 'total' : '')]),
      ),
      calls: ({ calls }) => `${calls}`,
      failed: ({ failed }) => `${failed}`,
      estimated: ({ estimated }) => `${estimated}`,
      lost: ({ lost }) => `${lost}`,
      input: ({ tokens }) => `${tokens.input}`,
      cached: ({ tokens }) => `${tokens.cached}`,
      output: ({ tokens }) => `${tokens.output}`,
      dollars: describeCost,
      'no price': ({ unpriced }) => `${unpriced}`,
    },
  });

/** `quillgate usage reprice`. Throws `StartupError` for what is no day, and `ConfigError` for a bad `PRICES_FILE`. */
export async function repriceUsage(environment: Environment, { from }: { from: string }): Promise<void> {
  checkDay('from', from);
  const priced = await withDatabase(environment, (database, config) => {
    const foreign: ReadonlySet<ProviderId> = new Set(foreignProviders(config));
    const prices = openPrices({ file: config.PRICES_FILE, foreign });
    return repriceCalls(database, { from, prices });
  });
  process.stdout.write(`${priced} ${priced === 1 ? 'call has' : 'calls have'} a cost now.\n`);
}

/** `quillgate usage forget`. Remove or suspend the user first: further chats would bring the name back. */
export async function forgetUsage(environment: Environment, user: string): Promise<void> {
  const forgotten = await withDatabase(environment, (database) => forgetUser(database, user, actor()));
  process.stdout.write(
    `Replaced the user's name in ${forgotten} ${forgotten === 1 ? 'request' : 'requests'}.\n`,
  );
}

/** The day of an option. Throws `StartupError` for any other text. */
function checkDay(name: string, text: string | undefined): string | undefined {
  const { error } = day.optional().safeParse(text);
  if (error) throw new StartupError(`--${name} ${error.issues[0]?.message}.`);
  return text;
}
