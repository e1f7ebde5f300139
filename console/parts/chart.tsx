import { useEffect, useRef } from 'preact/hooks';
import UPlot from 'uplot';

/** A line of a chart; null where nobody knows the value. */
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
  /** How a value is written beside the axis. */
  readonly format: (value: number) => string;
}

const height = 170;

/**
 * Lines over time. A picture alone: whoever uses it says the same as text. uPlot draws on a canvas and places its parts by script, which
 * the page's policy allows.
 */
export function Chart({ times, lines, format }: ChartProps) {
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
      plot.current = new UPlot(optionsFor(current, lines, format), shown.current, current);
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
  lines: readonly ChartLine[],
  format: (value: number) => string,
): UPlot.Options {
  const styles = getComputedStyle(place);
  const color = (name: string) => styles.getPropertyValue(name).trim();
  const axis = { stroke: color('--soft'), grid: { stroke: color('--line'), width: 1 } };
  return {
    width: place.clientWidth,
    height,
    legend: { show: false },
    cursor: { show: false },
    scales: { y: { range: (_, _min, max) => [0, Math.max(1, max * 1.1)] } },
    axes: [axis, { ...axis, size: 60, values: (_, values) => values.map(format) }],
    series: [{}, ...lines.map(({ label, color: name }) => ({ label, stroke: color(name), width: 1.5 }))],
  };
}
