import { openDatabase } from '../../../db/database/client.js';
import { sql } from '../../../db/database/drizzle.js';
import type { Deployment } from '../../support/deployment.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { markOf } from './balance.js';

/** How the ledger differs from what the provider has seen; nothing of it may. */
export interface LedgerBalance {
  /** Calls without a row, but for those that lost runs stand for. */
  missing: number;
  /** Rows without a call, but for requests of which no answer had begun: the provider may not have read them. */
  twice: number;
  /** Days whose sums are not those of their rows. */
  wrongDays: number;
  /** Runs that were lost. */
  lost: number;
}

interface Case {
  readonly stores: Deployment['stores'];
  /** When it began, in milliseconds since the epoch. */
  readonly since: number;
  /** The marks of its requests. */
  readonly marks: readonly string[];
  /** The models of the calls that the provider has seen. */
  readonly calledModels: readonly string[];
  /** How many calls a lost run may stand for. */
  readonly callsPerStart: number;
}

/** Compares the ledger with the calls of a case, once the outbox is empty. */
export async function balanceLedger({
  stores,
  since,
  marks,
  calledModels,
  callsPerStart,
}: Case): Promise<LedgerBalance> {
  const { log } = createRecordingLog();
  const database = openDatabase({ url: stores.DATABASE_URL ?? '', poolSize: 1, log });
  try {
    const isSince = sql`added_at >= to_timestamp(${since / 1000})`;
    const ofCase = sql`split_part(model, '@', 2) = any(${sql.param(marks)}::text[]) and ${isSince}`;
    const rows = await database.run((db) =>
      db.execute<{ model: string; made: number; unheard: number }>(sql`
        select model, sum(requests)::int as made, coalesce(sum(requests) filter (where status is null), 0)::int as unheard
        from calls where known <> 'lost' and ${ofCase} group by model`),
    );
    const lost = await database.run((db) =>
      db.execute<{ mark: string; runs: number }>(sql`
        select split_part(asked.model, '@', 2) as mark, count(*)::int as runs
        from calls join (select chat, model from requests where ${ofCase}) as asked using (chat)
        where known = 'lost' group by 1`),
    );
    const [days] = await database.run((db) => db.execute<{ wrong: number }>(wrongDays));
    const made = new Map(rows.map((row) => [row.model, row]));
    const called = Map.groupBy(calledModels, (model) => model);
    const differences = [...new Set([...made.keys(), ...called.keys()])].map((model) => {
      const { made: written, unheard } = made.get(model) ?? { made: 0, unheard: 0 };
      const missing = (called.get(model)?.length ?? 0) - written;
      return { mark: markOf(model), missing: Math.max(0, missing), twice: Math.max(0, -missing - unheard) };
    });
    // A lost run stands for calls of its own chat alone.
    const missing = [...Map.groupBy(differences, ({ mark }) => mark)].map(([mark, ofMark]) => {
      const runs = lost.find((found) => found.mark === mark)?.runs ?? 0;
      return Math.max(0, sum(ofMark.map((one) => one.missing)) - runs * callsPerStart);
    });
    return {
      missing: sum(missing),
      twice: sum(differences.map(({ twice }) => twice)),
      wrongDays: days?.wrong ?? 0,
      lost: sum(lost.map(({ runs }) => runs)),
    };
  } finally {
    await database.close();
  }
}

const sum = (numbers: readonly number[]): number => numbers.reduce((all, n) => all + n, 0);

const wrongDays = sql`
  select count(*)::int as wrong from (
    select day, sum(calls)::int, sum(lost)::int, sum(input)::bigint, sum(output)::bigint, sum(cost_nanos)::bigint from usage_days group by day
  ) as summed (day, calls, lost, input, output, cost) full join (
    select (ended_at at time zone 'utc')::date, count(*) filter (where known <> 'lost')::int,
      count(*) filter (where known = 'lost')::int, sum(input)::bigint, sum(output)::bigint, coalesce(sum(cost_nanos), 0)::bigint
    from calls group by 1
  ) as counted (day, calls, lost, input, output, cost) using (day)
  where (summed.calls, summed.lost, summed.input, summed.output, summed.cost)
    is distinct from (counted.calls, counted.lost, counted.input, counted.output, counted.cost)`;
