import type { Sample } from '../../shared/contracts/history.ts';
import { Chart, type ChartLine } from '../parts/chart.tsx';
import { ErrorNotice } from '../parts/field.tsx';
import { useFollowed } from '../parts/followed.ts';
import { formatDuration, formatNumber } from '../parts/format.ts';
import { maxSamples, openSamples, summaryOf } from './samples.ts';

interface ChartFacts {
  readonly title: string;
  readonly format: (value: number) => string;
  readonly lines: readonly (Pick<ChartLine, 'label' | 'color'> & {
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
    title: 'Chats in five seconds',
    format: formatNumber,
    lines: [
      { label: 'came', color: '--link', of: ({ arrivals }) => arrivals },
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
      { label: 'p95', color: '--warn', of: (sample) => sample[name]?.p95 },
    ],
  };
}

/** Ten minutes of a provider: each chart beside what it says as text. */
export function PoolCharts({ provider }: { provider: string }) {
  const { known, error } = useFollowed(() => openSamples(provider), [provider]);
  const samples = known.value?.samples.slice(-maxSamples) ?? [];
  return (
    <section aria-labelledby="history">
      <h2 id="history">Last ten minutes</h2>
      <ErrorNotice error={error.value} />
      {samples.length === 0 ? (
        <p class="soft">No measurements yet. They are lost when the API restarts.</p>
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
        <ul class="soft">
          {lines.map(({ label, values }) => (
            <li key={label}>{describeLine(label, values, format)}</li>
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

/** `waiting: 3 now, 12 at most, 4.5 on average`. */
function describeLine(label: string, values: readonly (number | null)[], format: (value: number) => string) {
  const summary = summaryOf(values);
  if (summary === undefined) return `${label}: not known`;
  const last = summary.last === null ? 'none now' : `${format(summary.last)} now`;
  return `${label}: ${last}, ${format(summary.max)} at most, ${format(summary.mean)} on average`;
}
