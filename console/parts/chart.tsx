import { useEffect, useRef } from 'preact/hooks';
import UPlot from 'uplot';
import { formatTime } from './format.ts';

/** A line of a chart; null where the value is unknown. */
export interface ChartLine {
  readonly label: string;
  /** Name of a colour of the page, such as `--link`. */
  readonly color: string;
  readonly isDashed?: boolean | undefined;
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
const dash = [4, 4];
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

/** A piece of a line, for the legend. */
export function LineSample({ color, isDashed }: Omit<ChartLine, 'label' | 'values'>) {
  return (
    <svg class="line-sample" viewBox="0 0 24 8" aria-hidden="true">
      <path
        d="M0 4H24"
        stroke={`var(${color})`}
        stroke-width="2"
        stroke-dasharray={isDashed ? dash.join(' ') : undefined}
      />
    </svg>
  );
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
      { ...axis, values: (_, times) => times.map((time) => formatTime(1000 * time).slice(11, 16)) },
      { ...axis, size: 60, incrs: wholeSteps, values: (_, values) => values.map(format) },
    ],
    series: [
      {},
      ...lines.map(({ label, color: name, isDashed }) => ({
        label,
        stroke: color(name),
        width: 1.5,
        ...(isDashed && { dash }),
      })),
    ],
  };
}

/** Parts of `of` beside each other, each a class and its size. A picture alone: its user says the same as text. */
export function Bar({
  parts,
  of,
}: {
  parts: readonly (readonly [name: string, size: number])[];
  of: number;
}) {
  const width = 100 / Math.max(1, of);
  let at = 0;
  return (
    <svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
      {parts.map(([name, size]) => {
        const x = at;
        at += size * width;
        return <rect key={name} class={name} x={x.toFixed(2)} width={(size * width).toFixed(2)} height="8" />;
      })}
    </svg>
  );
}

/** A line of the last values, oldest first, with gaps where a value is null; nothing for screen readers. */
export function Sparkline({ values, max }: { values: readonly (number | null)[]; max: number }) {
  const top = Math.max(1, max, ...values.map((value) => value ?? 0));
  const step = 100 / Math.max(1, values.length - 1);
  return (
    <svg class="sparkline" viewBox="0 0 100 24" preserveAspectRatio="none" aria-hidden="true">
      <path
        d={linesOf(
          values.map((value) => (value === null ? null : 23 - (22 * value) / top)),
          step,
        )}
      />
    </svg>
  );
}

/** The path through the values, with gaps; its round ends show one that stands alone. */
export const linesOf = (values: readonly (number | null)[], step: number): string =>
  values
    .map((value, n) => {
      if (value === null) return '';
      const command = (values[n - 1] ?? null) === null ? 'M' : 'L';
      return `${command}${(n * step).toFixed(1)} ${value.toFixed(1)}h0`;
    })
    .join('');
