import { createHistogram } from 'node:perf_hooks';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from '@prometheus-io/client';
import type { apiMetrics, MetricDefinition, MetricTable, workerMetrics } from './metrics.js';

/** The metrics of one process: `metrics` to record values, `scrape` to serve `/metrics`. */
export interface Instruments<Table extends MetricTable> {
  readonly metrics: { readonly [Key in keyof Table]: InstrumentOf<Table[Key]> };
  /** Sets counters and histograms to 0 for all combinations of labels, so that the first event is an increase. */
  startAtZero(of?: Readonly<Record<string, string>>): void;
  /** Registers a function that every scrape calls and awaits to set gauges; it must not fail. */
  onScrape(refresh: () => void | Promise<void>): void;
  /** Everything in Prometheus's text format. */
  scrape(): Promise<{ contentType: string; text: string }>;
}

export type ApiInstruments = Instruments<typeof apiMetrics>;
export type WorkerInstruments = Instruments<typeof workerMetrics>;

/** The labels of a definition, each with one of its values. */
type LabelsOf<Definition extends MetricDefinition> = {
  readonly [Label in keyof Definition['labels']]: Definition['labels'][Label][number];
};

type InstrumentOf<Definition extends MetricDefinition> = {
  counter: { inc(labels: LabelsOf<Definition>, value?: number): void };
  gauge: {
    set(labels: LabelsOf<Definition>, value: number): void;
    inc(labels: LabelsOf<Definition>): void;
    dec(labels: LabelsOf<Definition>): void;
    /** Forgets every value. */
    reset(): void;
  };
  histogram: { observe(labels: LabelsOf<Definition>, seconds: number): void };
}[Definition['type']];

/**
 * Opens the metrics of the table in a registry of their own, with those of the process itself if `ofProcess`: for
 * programs alone, because these are measured ten times a second for as long as the process lives.
 */
export function openInstruments<Table extends MetricTable>(
  table: Table,
  { ofProcess = false }: { ofProcess?: boolean } = {},
): Instruments<Table> {
  const registry = new Registry();
  if (ofProcess) collectDefaultMetrics({ register: registry });
  const opened = Object.entries(table).map(
    ([key, definition]) => [key, definition, open(definition, registry)] as const,
  );
  const refreshes: (() => void | Promise<void>)[] = [];
  return {
    // The keys are the table's, and each was opened by its type.
    metrics: Object.fromEntries(
      opened.map(([key, , instrument]) => [key, instrument]),
    ) as unknown as Instruments<Table>['metrics'],
    startAtZero: (of = {}) => {
      for (const [, { labels }, instrument] of opened)
        for (const combination of combinations(labels, of)) {
          if (instrument instanceof Counter) instrument.inc(combination, 0);
          if (instrument instanceof Histogram) instrument.zero(combination);
        }
    },
    onScrape: (refresh) => void refreshes.push(refresh),
    scrape: async () => {
      await Promise.all(refreshes.map((refresh) => refresh()));
      return { contentType: registry.contentType, text: await registry.metrics() };
    },
  };
}

function open({ type, name, help, labels, buckets = [] }: MetricDefinition, registry: Registry) {
  const settings = { name, help, labelNames: Object.keys(labels), registers: [registry] };
  switch (type) {
    case 'counter':
      return new Counter(settings);
    case 'gauge':
      return new Gauge(settings);
    case 'histogram':
      return new Histogram({ ...settings, buckets: [...buckets] });
  }
}

type Labels = Record<string, string>;

/** All combinations of labels with these values; one that `of` names has that value alone. */
function combinations(labels: MetricDefinition['labels'], of: Labels): Labels[] {
  let all: Labels[] = [{}];
  for (const [label, values] of Object.entries(labels)) {
    const wanted = values.filter((value) => value === (of[label] ?? value));
    all = all.flatMap((before) => wanted.map((value) => ({ ...before, [label]: value })));
  }
  return all;
}

/** Up to an hour, the longest call. One significant digit makes a percentile at most a tenth too high. */
const range = { lowest: 1, highest: 3_600_000, figures: 1 };

/** Durations, counted by their length in a histogram of Node's: memory does not grow with their number. */
export class DurationCounts {
  readonly #histogram = createHistogram(range);
  #sumMs = 0;

  get count(): number {
    return this.#histogram.count;
  }

  get sumMs(): number {
    return this.#sumMs;
  }

  /** One below 0, by a clock that was set back, counts as 0. */
  record(ms: number): void {
    const duration = Math.max(0, ms);
    this.#histogram.record(Math.min(Math.max(range.lowest, Math.round(duration)), range.highest));
    this.#sumMs += duration;
  }

  /** The duration that this share of all does not exceed, in whole milliseconds; 0 without any. */
  static percentile(all: readonly DurationCounts[], share: number): number {
    const merged = createHistogram(range);
    for (const counts of all) merged.add(counts.#histogram);
    return merged.count === 0 ? 0 : merged.percentile(100 * share);
  }
}
