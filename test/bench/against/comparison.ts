import type { Lifecycle } from '../../../shared/runtime/lifecycle.js';
import type { Log } from '../../../shared/runtime/log.js';
import { interleave, type Row } from '../interleaved/interleave.js';
import type { LoadResult } from '../load.js';
import { errorCount } from '../results.js';
import { productParts, type Usage } from '../usage.js';
import { type Measured, type Round, type Side, type Summary, sides, summarise } from './statistics.js';

/** What each part of a comparison needs. */
export interface ComparisonDeps {
  /** Root folders of the two checkouts. */
  readonly roots: Readonly<Record<Side, string>>;
  readonly rounds: number;
  /** Length of each measurement, after a warm-up of `warmUpSeconds`. */
  readonly seconds: number;
  readonly warmUpSeconds: number;
  /** Folder for logs and the stores' files. */
  readonly dir: string;
  readonly outer: Lifecycle;
  readonly log: Log;
  onRound(title: string, round: Round): void;
}

/** What came of one row. */
export interface RowResult extends Summary {
  readonly title: string;
  readonly rounds: readonly Round[];
}

/** The rows that were measured, and what could not be, with the reason. */
export interface Compared {
  readonly rows: readonly RowResult[];
  readonly skipped: readonly string[];
}

/** Measures both sides of the rows in turns, and sums up. */
export async function compareRows(
  rows: readonly Row<Side, Measured>[],
  { rounds, onRound }: Pick<ComparisonDeps, 'rounds' | 'onRound'>,
): Promise<Compared> {
  const onRow = ({ title }: Row<Side, Measured>, round: Round) => onRound(title, round);
  const measured = await interleave({ sides, rows, rounds, onRound: onRow });
  const results = measured.rows.map(({ row, rounds: all }) => ({
    title: row.title,
    rounds: all,
    ...summarise(all),
  }));
  return { rows: results, skipped: measured.skipped };
}

/** The figures of one run that are compared. */
export function figuresOf({ load, usage }: { load: LoadResult; usage: Usage }): Measured {
  const cpuSeconds = productParts.reduce((sum, part) => sum + (usage.parts[part]?.cpuSeconds ?? 0), 0);
  const { p50Ms, p99Ms } = load;
  return {
    perSecond: load.answers / load.seconds,
    ...(p50Ms !== undefined && { p50Ms }),
    ...(p99Ms !== undefined && { p99Ms }),
    ...(load.answers > 0 && cpuSeconds > 0 && { cpuMs: (cpuSeconds * 1000) / load.answers }),
    errors: errorCount(load.errors),
    othersBusy: usage.othersBusy,
  };
}
