import type { Sample } from '../../shared/contracts/history.ts';
import { Chart, type ChartLine, LineSample } from '../parts/chart.tsx';
import { ErrorNotice } from '../parts/field.tsx';
import { formatDuration, formatNumber } from '../parts/format.ts';
import { summaryOf, useSamples } from './samples.ts';

interface ChartFacts {
  readonly title: string;
  readonly format: (value: number) => string;
  readonly lines: readonly (Omit<ChartLine, 'values'> & {
    readonly of: (sample: Sample) => number | null | undefined;
  })[];
}

/** The API keeps samples for as long. */
const shownSeconds = 600;

const charts: readonly ChartFacts[] = [
  {
    title: 'Waiting',
    format: formatNumber,
    lines: [{ label: 'waiting', color: '--warn', of: ({ waiting }) => waiting }],
  },
  {
    title: 'In flight',
    format: formatNumber,
    lines: [
      { label: 'in flight', color: '--link', of: ({ inFlight }) => inFlight },
      { label: 'allowed at once', color: '--soft', of: ({ concurrency }) => concurrency },
    ],
  },
  chartOfTimes('Wait in the queue', 'queueMs'),
  chartOfTimes('Time at the provider', 'providerMs'),
  {
    title: 'Ended chats in five seconds',
    format: formatNumber,
    lines: [
      { label: 'ended', color: '--good', of: ({ ended }) => ended },
      { label: 'failed', color: '--bad', of: ({ failed }) => failed },
    ],
  },
];

function chartOfTimes(title: string, name: 'queueMs' | 'providerMs'): ChartFacts {
  return {
    title,
    format: formatDuration,
    lines: [
      { label: 'p50', color: '--link', of: (sample) => sample[name]?.p50 },
      { label: 'p95', color: '--warn', isDashed: true, of: (sample) => sample[name]?.p95 },
    ],
  };
}

/** Ten minutes of a provider: each chart beside what it says as text. */
export function PoolCharts({ provider }: { provider: string }) {
  const { samples, error } = useSamples(provider);
  return (
    <section aria-labelledby="history">
      <h2 id="history">Last ten minutes</h2>
      <ErrorNotice error={samples.length > 0 ? undefined : error} />
      {samples.length === 0 ? (
        <p class="soft">No measurements yet: the first comes within five seconds.</p>
      ) : (
        <div class="charts">
          {charts.map((facts) => (
            <PoolChart key={facts.title} facts={facts} samples={samples} />
          ))}
        </div>
      )}
    </section>
  );
}

function PoolChart({ facts, samples }: { facts: ChartFacts; samples: readonly Sample[] }) {
  const { title, format } = facts;
  const lines = facts.lines.map(({ of, ...line }) => ({
    ...line,
    values: samples.map((sample) => of(sample) ?? null),
  }));
  return (
    <figure>
      <figcaption>
        <h3>{title}</h3>
        <ul class="row soft legend">
          {lines.map(({ label, color, isDashed, values }) => (
            <li key={label}>
              <LineSample color={color} isDashed={isDashed} />
              <LineText label={label} values={values} format={format} />
            </li>
          ))}
        </ul>
      </figcaption>
      <Chart
        times={samples.map(({ at }) => Date.parse(at) / 1000)}
        lines={lines}
        seconds={shownSeconds}
        format={format}
      />
    </figure>
  );
}

/** `p95 1.2 s, at most 4 s`; the chart itself shows the latter. */
function LineText({
  label,
  values,
  format,
}: Pick<ChartLine, 'label' | 'values'> & Pick<ChartFacts, 'format'>) {
  const summary = summaryOf(values);
  if (summary === undefined) return <>{label} unknown</>;
  return (
    <>
      {label} {summary.last === null ? '–' : format(summary.last)}
      <span class="hidden">, at most {format(summary.max)}</span>
    </>
  );
}
