/** A value at a time in minutes. */
export interface Point {
  readonly minute: number;
  readonly value: number;
}

/** By how much the values grow in a minute: the slope of the line through them by least squares. */
export function slopePerMinute(points: readonly Point[]): number {
  const mean = (pick: (point: Point) => number) =>
    points.reduce((sum, point) => sum + pick(point), 0) / points.length;
  const meanMinute = mean(({ minute }) => minute);
  const meanValue = mean(({ value }) => value);
  const spread = mean(({ minute }) => (minute - meanMinute) ** 2);
  return mean(({ minute, value }) => (minute - meanMinute) * (value - meanValue)) / spread;
}
