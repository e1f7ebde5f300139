import { setTimeout as delay } from 'node:timers/promises';
import { interleave, type Row } from '../interleaved/interleave.js';
import { median } from '../interleaved/statistics.js';
import type { StoreName } from '../options.js';
import { readProcessTable } from '../process-table.js';
import type { Lengths } from '../runs.js';
import { memoryOf, type Part, type PartPids } from '../usage.js';
import { titleOf } from './chat.js';
import { type ByPart, type Measured, measuredOf, partsOf, type Summary, summarise } from './figures.js';
import { heat, type Load, openSides, type SidesDeps } from './running-sides.js';
import { type Side, sides } from './sides.js';

/** One measurement with many requests in flight. */
export interface InFlight extends Measured {
  /** Calls that the simulator had open at once. */
  readonly maxAtProvider: number;
}

/** What came of one row. */
export interface InFlightRow extends Load, Summary {
  /** Answers per second, if they took no longer than the provider does. */
  readonly idealPerSecond: number;
  /** For one request in flight, of what answers, over the same processes warmed and idle: the median of the rounds. */
  readonly growthBytes: Readonly<Partial<Record<Side, number>>>;
  readonly rounds: readonly Readonly<Record<Side, InFlight>>[];
}

export interface InFlightResults {
  readonly store: StoreName;
  /** Resident memory of the processes, warmed and idle. */
  readonly idleBytes: ByPart;
  readonly rows: readonly InFlightRow[];
  readonly skipped: readonly string[];
}

interface InFlightDeps extends SidesDeps {
  loads: readonly Load[];
  rounds: number;
  onRound(title: string, round: Readonly<Record<Side, InFlight>>): void;
}

type LoadRow = Row<Side, InFlight> & { readonly load: Load };

const heatingConnections = 128;
const restSeconds = 10;

/** Holds many requests in flight steadily, on each side in turns, and says what memory each takes. */
export async function compareInFlight({ loads, rounds, ...deps }: InFlightDeps): Promise<InFlightResults> {
  const { name } = deps.store;
  const jobsAtOnce = Math.max(...loads.map(({ connections }) => connections));
  const running = await openSides({ ...deps, jobsAtOnce });
  await heat(running, heatingConnections);
  await delay(restSeconds * 1000, undefined, { signal: running.stopping });
  const { gateway, store } = running;
  const idleBytes = memoryNow({ ...gateway.pids, store: store.pid, peer: deps.peer.pid });
  const rows = loads.map(
    (load): LoadRow => ({
      ...{ load, title: titleOf(load, name) },
      whyNot: (side) => running.whyNot(side, load),
      measure: async (side) => {
        const run = await running.run(side, load, lengthsOf(load));
        // What our processes do when idle does not count in so few requests.
        return { ...measuredOf(side, run, { cpuMs: {} }), maxAtProvider: run.maxAtProvider };
      },
    }),
  );
  const onRound = ({ title }: LoadRow, round: Readonly<Record<Side, InFlight>>) => deps.onRound(title, round);
  const measured = await interleave<Side, InFlight, LoadRow>({ sides, rows, rounds, onRound });
  await running.close();
  return {
    ...{ store: name, idleBytes, skipped: measured.skipped },
    rows: measured.rows.map(({ row, rounds: all }) => summariseRow(row.load, all, idleBytes)),
  };
}

export function summariseRow(load: Load, rounds: InFlightRow['rounds'], idleBytes: ByPart): InFlightRow {
  const growthOf = (side: Side) =>
    median(rounds.map((round) => grownBytes(side, round[side].peakBytes, idleBytes) / load.connections));
  const grown = sides.filter((side) => partsOf[side].length > 0).map((side) => [side, growthOf(side)]);
  return {
    ...load,
    ...summarise(rounds),
    idealPerSecond: (load.connections * 1000) / load.latencyMs,
    growthBytes: Object.fromEntries(grown),
    rounds,
  };
}

const grownBytes = (side: Side, peakBytes: ByPart, idleBytes: ByPart): number =>
  partsOf[side].reduce(
    (sum, part) => sum + (peakBytes[part] ?? Number.NaN) - (idleBytes[part] ?? Number.NaN),
    0,
  );

function memoryNow(pids: PartPids): ByPart {
  const table = readProcessTable();
  const entries = Object.entries(pids) as [Part, number | undefined][];
  return Object.fromEntries(entries.map(([part, pid]) => [part, memoryOf(table, pid)]));
}

/** Callers begin evenly over the time of an answer; each has had one before the measured time, which is three answers long. */
function lengthsOf({ latencyMs }: Load): Lengths {
  const latencySeconds = latencyMs / 1000;
  return {
    spreadSeconds: latencySeconds,
    warmUpSeconds: 2 * latencySeconds + 1,
    seconds: 3 * latencySeconds,
    timeoutSeconds: Math.max(10, 3 * latencySeconds),
  };
}
