/** One kind of request that each side is asked. */
export interface Row<Side extends string, Measured> {
  readonly title: string;
  /** Why the side cannot be asked this; undefined when it can. Absent when every side can. */
  whyNot?(side: Side): Promise<string | undefined>;
  measure(side: Side): Promise<Measured>;
}

/** One measurement of each side, one straight after the other. */
export type Round<Side extends string, Measured> = Readonly<Record<Side, Measured>>;

/** A row with what came of its rounds. */
export interface MeasuredRow<AnyRow, Side extends string, Measured> {
  readonly row: AnyRow;
  readonly rounds: readonly Round<Side, Measured>[];
}

/** The rows that were measured, and what could not be, with the reason. */
export interface Interleaved<AnyRow, Side extends string, Measured> {
  readonly rows: readonly MeasuredRow<AnyRow, Side, Measured>[];
  readonly skipped: readonly string[];
}

interface InterleaveOptions<AnyRow, Side extends string, Measured> {
  sides: readonly Side[];
  rows: readonly AnyRow[];
  rounds: number;
  onRound(row: AnyRow, round: Round<Side, Measured>): void;
}

/**
 * Measures all sides of each row straight after one another, all rows in each round. The order turns round from one
 * round to the next (ABBA), so that a machine that gets steadily slower or faster favours no side.
 */
export async function interleave<Side extends string, Measured, AnyRow extends Row<Side, Measured>>({
  sides,
  rows,
  rounds,
  onRound,
}: InterleaveOptions<AnyRow, Side, Measured>): Promise<Interleaved<AnyRow, Side, Measured>> {
  const { possible, skipped } = await sift(sides, rows);
  const measured = possible.map((row) => ({ row, rounds: [] as Round<Side, Measured>[] }));
  for (let number = 0; number < rounds; number += 1) {
    for (const { row, rounds: results } of measured) {
      const round = await measureRound<Side, Measured>(row, turned(sides, number));
      results.push(round);
      onRound(row, round);
    }
  }
  return { rows: measured, skipped };
}

/** The order of the sides in this round. */
export const turned = <Side>(sides: readonly Side[], round: number): readonly Side[] =>
  round % 2 === 0 ? sides : sides.toReversed();

async function sift<Side extends string, AnyRow extends Pick<Row<Side, unknown>, 'title' | 'whyNot'>>(
  sides: readonly Side[],
  rows: readonly AnyRow[],
): Promise<{ possible: AnyRow[]; skipped: string[] }> {
  const possible: AnyRow[] = [];
  const skipped: string[] = [];
  for (const row of rows) {
    const obstacles: string[] = [];
    for (const side of sides) {
      const reason = await row.whyNot?.(side);
      if (reason !== undefined) obstacles.push(`the ${side} ${reason}`);
    }
    if (obstacles.length === 0) possible.push(row);
    else skipped.push(`${row.title}: ${obstacles.join(', ')}`);
  }
  return { possible, skipped };
}

async function measureRound<Side extends string, Measured>(
  row: Row<Side, Measured>,
  order: readonly Side[],
): Promise<Round<Side, Measured>> {
  const measured: [Side, Measured][] = [];
  for (const side of order) measured.push([side, await row.measure(side)]);
  return Object.fromEntries(measured) as Round<Side, Measured>;
}
