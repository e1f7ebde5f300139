import { type Measured, type Round, type Side, type Summary, sides, summarise } from './statistics.js';

/** One kind of request that both sides are asked. */
export interface Row {
  readonly title: string;
  /** Why the side cannot be asked this; undefined when it can. */
  whyNot(side: Side): Promise<string | undefined>;
  measure(side: Side): Promise<Measured>;
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

interface InterleaveOptions {
  rows: readonly Row[];
  rounds: number;
  onRound(title: string, round: Round): void;
}

/**
 * Measures both sides of each row straight after one another, all rows in each round. The order turns round from one
 * round to the next (ABBA), so that a machine that gets steadily slower or faster favours neither side.
 */
export async function interleave({ rows, rounds, onRound }: InterleaveOptions): Promise<Compared> {
  const { possible, skipped } = await sift(rows);
  const measured = new Map<Row, Round[]>(possible.map((row) => [row, []]));
  for (let number = 0; number < rounds; number += 1) {
    for (const [row, results] of measured) {
      const round = await measureRound(row, number);
      results.push(round);
      onRound(row.title, round);
    }
  }
  const results = [...measured].map(([{ title }, all]) => ({ title, rounds: all, ...summarise(all) }));
  return { rows: results, skipped };
}

async function sift(rows: readonly Row[]): Promise<{ possible: Row[]; skipped: string[] }> {
  const possible: Row[] = [];
  const skipped: string[] = [];
  for (const row of rows) {
    const obstacles: string[] = [];
    for (const side of sides) {
      const reason = await row.whyNot(side);
      if (reason !== undefined) obstacles.push(`the ${side} ${reason}`);
    }
    if (obstacles.length === 0) possible.push(row);
    else skipped.push(`${row.title}: ${obstacles.join(', ')}`);
  }
  return { possible, skipped };
}

async function measureRound(row: Row, number: number): Promise<Round> {
  if (number % 2 === 0) {
    const baseline = await row.measure('baseline');
    return { baseline, candidate: await row.measure('candidate') };
  }
  const candidate = await row.measure('candidate');
  return { baseline: await row.measure('baseline'), candidate };
}
