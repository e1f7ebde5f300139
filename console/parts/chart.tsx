import { useEffect, useRef } from 'preact/hooks';
import UPlot from 'uplot';
import { formatMinute } from './format.ts';

/** A line of a chart; null where the value is unknown. */
export interface ChartLine {
  readonly label: string;
  /** Name of a colour of the page, such as `--link`. */
  readonly color: string;
  readonly values: readonly (number | null)[];
}

interface ChartProps {
  /** In seconds since 1970, oldest first, as many as each line has values. */
  readonly times: readonly number[];
  readonly lines: readonly ChartLine[];
  /** How long the axis is that ends with the last of them. */
  readonly seconds: number;
  readonly format: (value: number) => string;
}

const height = 170;
/** Nothing is drawn here that has fractions. */
const wholeSteps = [0, 1, 2, 3, 4, 5, 6, 7, 8].flatMap((power) =>
  [1, 2, 5].map((step) => step * 10 ** power),
);

const spanTo = (last: number, seconds: number): [number, number] => [last - seconds, last];

/**
 * Lines over time. A picture alone: its user says the same as text. uPlot draws on a canvas and places its parts
 * by script, which the page's policy allows.
 */
export function Chart({ times, lines, seconds, format }: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<UPlot | undefined>(undefined);
  const data = [times, ...lines.map(({ values }) => values)] as UPlot.AlignedData;
  const shown = useRef(data);
  shown.current = data;
  useEffect(() => {
    const { current } = place;
    if (current === null) return;
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    const draw = () => {
      plot.current?.destroy();
      plot.current = new UPlot(optionsFor(current, { lines, seconds, format }), shown.current, current);
    };
    const resized = new ResizeObserver(() => plot.current?.setSize({ width: current.clientWidth, height }));
    draw();
    resized.observe(current);
    scheme.addEventListener('change', draw);
    return () => {
      scheme.removeEventListener('change', draw);
      resized.disconnect();
      plot.current?.destroy();
    };
  }, []);
  useEffect(() => plot.current?.setData(data));
  return <div class="plot" aria-hidden="true" ref={place} />;
}

/** A canvas knows no variables of style sheets. */
function optionsFor(
  place: HTMLElement,
  { lines, seconds, format }: Omit<ChartProps, 'times'>,
): UPlot.Options {
  const styles = getComputedStyle(place);
  const color = (name: string) => styles.getPropertyValue(name).trim();
  const axis = { stroke: color('--soft'), grid: { stroke: color('--line'), width: 1 } };
  return {
    width: place.clientWidth,
    height,
    legend: { show: false },
    cursor: { show: false },
    scales: {
      x: { range: ({ data: [times] }) => spanTo(times.at(-1) ?? Date.now() / 1000, seconds) },
      y: { range: (_, _min, max) => [0, Math.max(1, max * 1.1)] },
    },
    axes: [
      { ...axis, values: (_, times) => times.map((time) => formatMinute(1000 * time)) },
      { ...axis, size: 60, incrs: wholeSteps, values: (_, values) => values.map(format) },
    ],
    series: [{}, ...lines.map(({ label, color: name }) => ({ label, stroke: color(name), width: 1.5 }))],
  };
}

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
