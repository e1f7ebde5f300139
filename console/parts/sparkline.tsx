/** A line of the last values, oldest first, as wide as its place; a picture beside a number, so nothing for screen readers. */
export function Sparkline({ values, max }: { values: readonly number[]; max?: number }) {
  const top = Math.max(1, max ?? 0, ...values);
  const step = 100 / Math.max(1, values.length - 1);
  const points = values.map((value, n) => `${(n * step).toFixed(1)},${(23 - (value / top) * 22).toFixed(1)}`);
  return (
    <svg class="sparkline" viewBox="0 0 100 24" preserveAspectRatio="none" aria-hidden="true">
      <polygon points={`0,24 ${points.join(' ')} 100,24`} />
      <polyline points={points.join(' ')} vector-effect="non-scaling-stroke" />
    </svg>
  );
}
