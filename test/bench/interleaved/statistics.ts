/** One side's figures divided by another's, round by round. */
export interface Ratio {
  readonly median: number;
  readonly least: number;
  readonly most: number;
}

/**
 * Divides round by round, so that a slow moment of the machine counts for both sides. Undefined when a round lacks one
 * of the figures, or there is nothing to divide by.
 */
export function ratioOf(pairs: readonly (readonly [figure: Figure, by: Figure])[]): Ratio | undefined {
  const ratios = pairs.flatMap(([figure, by]) =>
    figure !== undefined && by !== undefined && by > 0 ? [figure / by] : [],
  );
  if (ratios.length < pairs.length || ratios.length === 0) return undefined;
  return { median: median(ratios), least: Math.min(...ratios), most: Math.max(...ratios) };
}

/** Absent when it could not be measured. */
type Figure = number | undefined;

/** The middle one, or the mean of the two in the middle; not a number when there is none. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  const middle = sorted.length / 2;
  const [low, high] = [sorted[Math.ceil(middle) - 1], sorted[Math.floor(middle)]];
  return low === undefined || high === undefined ? Number.NaN : (low + high) / 2;
}
