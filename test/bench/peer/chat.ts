import { type Idle, measureIdle } from '../idle.js';
import { interleave, type Row } from '../interleaved/interleave.js';
import type { StoreName } from '../options.js';
import type { Lengths } from '../runs.js';
import { storeTitles } from '../store.js';
import { type Measured, measuredOf, type Round, type Summary, summarise } from './figures.js';
import { heat, type Load, openSides, type SidesDeps } from './running-sides.js';
import { type Side, sides } from './sides.js';

/** What came of one row. */
export interface RowResult extends Load, Summary {
  readonly rounds: readonly Round[];
}

/** What came of one store. */
export interface ChatResults {
  readonly store: StoreName;
  readonly idlePerSecond: Idle;
  readonly rows: readonly RowResult[];
  readonly skipped: readonly string[];
}

interface ChatDeps extends SidesDeps {
  loads: readonly Load[];
  seconds: number;
  rounds: number;
  onRound(title: string, round: Round): void;
}

type LoadRow = Row<Side, Measured> & { readonly load: Load };

const heatingConnections = 32;

/** Measures our gateway on one store, the other one and the simulator in turns. */
export async function compareChat({ loads, seconds, rounds, ...deps }: ChatDeps): Promise<ChatResults> {
  const { name } = deps.store;
  const running = await openSides(deps);
  await heat(running, heatingConnections);
  const idle = await measureIdle(running.gateway, running.store, running.stopping);
  const rows = loads.map(
    (load): LoadRow => ({
      ...{ load, title: titleOf(load, name) },
      whyNot: (side) => running.whyNot(side, load),
      measure: async (side) =>
        measuredOf(side, await running.run(side, load, lengthsOf(load, seconds)), idle),
    }),
  );
  const onRound = ({ title }: LoadRow, round: Round) => deps.onRound(title, round);
  const measured = await interleave<Side, Measured, LoadRow>({ sides, rows, rounds, onRound });
  await running.close();
  return {
    store: name,
    idlePerSecond: idle,
    rows: measured.rows.map(({ row, rounds: all }) => ({ ...row.load, ...summarise(all), rounds: all })),
    skipped: measured.skipped,
  };
}

export const titleOf = ({ latencyMs, connections }: Load, store: StoreName): string =>
  `${storeTitles[store]}, provider ${latencyMs} ms, connections ${connections}`;

/** For each time of the provider all numbers of callers. */
export const planLoads = (latenciesMs: readonly number[], connections: readonly number[]): Load[] =>
  latenciesMs.flatMap((latencyMs) => connections.map((count) => ({ latencyMs, connections: count })));

const warmUpSeconds = 1;
const timeoutSeconds = 10;
/** Each connection gets so many answers at least. */
const answersOfEach = 8;

/** A measurement has to be several times as long as an answer, and no answer of the warm-up may be in it alone. */
export function lengthsOf({ latencyMs }: Load, seconds: number): Lengths {
  const latencySeconds = latencyMs / 1000;
  return {
    seconds: Math.max(seconds, answersOfEach * latencySeconds),
    warmUpSeconds: Math.max(warmUpSeconds, 2 * latencySeconds),
    timeoutSeconds: Math.max(timeoutSeconds, 3 * latencySeconds),
  };
}
