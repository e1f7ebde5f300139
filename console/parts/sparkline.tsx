/** A line of the last values, oldest first, with gaps where a value is null; nothing for screen readers. */
export function Sparkline({ values, max }: { values: readonly (number | null)[]; max?: number }) {
  const top = Math.max(1, max ?? 0, ...values.map((value) => value ?? 0));
  const step = 100 / Math.max(1, values.length - 1);
  const toX = (n: number) => (n * step).toFixed(1);
  const toY = (value: number) => (23 - (value / top) * 22).toFixed(1);
  return (
    <svg class="sparkline" viewBox="0 0 100 24" preserveAspectRatio="none" aria-hidden="true">
      {runsOf(values).map(({ from, values: run }) => {
        const points = run.map((value, n) => `${toX(from + n)},${toY(value)}`).join(' ');
        return (
          <g key={from}>
            <polygon points={`${toX(from)},24 ${points} ${toX(from + run.length - 1)},24`} />
            <polyline points={points} vector-effect="non-scaling-stroke" />
          </g>
        );
      })}
    </svg>
  );
}

/** The values between the gaps. A single one is drawn from the place before it, so that it can be seen. */
export function runsOf(values: readonly (number | null)[]) {
  const runs: { from: number; values: number[] }[] = [];
  for (const [n, value] of values.entries()) {
    if (value === null) continue;
    const last = runs.at(-1);
    if (last && last.from + last.values.length === n) last.values.push(value);
    else runs.push({ from: n, values: [value] });
  }
  return runs.map((run) => {
    const [first] = run.values;
    return run.values.length === 1 && first !== undefined
      ? { from: run.from - 1, values: [first, first] }
      : run;
  });
}
