import { type ProviderId, providerIds } from '../../../shared/contracts/contract.js';
import type { RecentRequest, Sample } from '../../../shared/contracts/history.js';
import { DurationCounts } from '../../../shared/metrics/instruments.js';

/** A sample with its time in milliseconds since the epoch, a multiple of five seconds. */
export interface TimedSample extends Omit<Sample, 'at'> {
  readonly slot: number;
}

/** How busy a provider is at one moment; null where it is unknown. */
export type Load = Pick<Sample, 'waiting' | 'active' | 'inFlight' | 'concurrency'>;

interface SampleLogDeps {
  /** How busy the providers are now; must settle within a second or two, and never reject. */
  readLoads: () => Promise<readonly (Load & { readonly provider: ProviderId })[]>;
  /** The time, in milliseconds since the epoch. */
  now?: () => number;
}

export const sampleEveryMs = 5000;
const keptMs = 600_000;
const minApartMs = 1000;

type Percentiles = NonNullable<Sample['queueMs']>;

/** The events since the last sample. */
class Tally {
  readonly queue = new DurationCounts();
  readonly provider = new DurationCounts();
  arrivals = 0;
  ended = 0;
  failed = 0;
}

const noLoad: Load = { waiting: null, active: null, inFlight: null, concurrency: null };
/** The ends of chats that are no failures. */
export const goodEnds: ReadonlySet<string> = new Set(['ok', 'truncated', 'blocked', 'cancelled']);

/** Measurements of this process, one every five seconds for each provider, of the last ten minutes. */
export class SampleLog {
  readonly #deps: Required<SampleLogDeps>;
  #tallies = newTallies();
  /** The samples that are kept, oldest first. */
  #samples: TimedSample[] = [];
  #timer: NodeJS.Timeout | undefined;
  #isTaking = false;

  constructor(deps: SampleLogDeps) {
    this.#deps = { now: Date.now, ...deps };
  }

  start(): void {
    const leftMs = sampleEveryMs - (this.#deps.now() % sampleEveryMs);
    // A timer may be early by a millisecond.
    const untilNext = leftMs < minApartMs ? leftMs + sampleEveryMs : leftMs;
    this.#timer = setTimeout(() => {
      void this.take();
      this.start();
    }, untilNext).unref();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  recordArrival(provider: ProviderId): void {
    this.#tallyOf(provider).arrivals += 1;
  }

  recordEnd({ provider, code, queueMs, providerMs }: RecentRequest): void {
    const tally = this.#tallyOf(provider);
    tally.ended += 1;
    if (!goodEnds.has(code)) tally.failed += 1;
    if (queueMs !== undefined) tally.queue.record(queueMs);
    if (providerMs !== undefined) tally.provider.record(providerMs);
  }

  /** The samples of the last ten minutes, oldest first. */
  list(): readonly TimedSample[] {
    return this.#samples;
  }

  /** Samples the five-second slot that just ended. If the clock was set back, known slots are not repeated. */
  async take(): Promise<void> {
    if (this.#isTaking) return;
    this.#isTaking = true;
    const slot = Math.round(this.#deps.now() / sampleEveryMs) * sampleEveryMs - sampleEveryMs;
    const tallies = this.#tallies;
    this.#tallies = newTallies();
    const loads = await this.#deps.readLoads();
    const taken = [...tallies].map(([provider, tally]) => ({
      slot,
      provider,
      ...(loads.find((load) => load.provider === provider) ?? noLoad),
      arrivals: tally.arrivals,
      ended: tally.ended,
      failed: tally.failed,
      queueMs: percentilesOf(tally.queue),
      providerMs: percentilesOf(tally.provider),
    }));
    const isKept = (sample: TimedSample) => sample.slot < slot && sample.slot > slot - keptMs;
    this.#samples = [...this.#samples.filter(isKept), ...taken];
    this.#isTaking = false;
  }

  #tallyOf(provider: ProviderId): Tally {
    const tally = this.#tallies.get(provider) ?? new Tally();
    this.#tallies.set(provider, tally);
    return tally;
  }
}

const newTallies = (): Map<ProviderId, Tally> => new Map(providerIds.map((id) => [id, new Tally()]));

const percentilesOf = (durations: DurationCounts): Percentiles | null =>
  durations.count === 0
    ? null
    : { p50: DurationCounts.percentile([durations], 0.5), p95: DurationCounts.percentile([durations], 0.95) };

/**
 * The samples of several processes as one: what came and ended adds up, how busy the provider is says the first that
 * knows it. Oldest first, in the usual order of providers.
 */
export function mergeSamples(all: Iterable<readonly TimedSample[]>): Sample[] {
  const merged = new Map<string, TimedSample>();
  for (const samples of all)
    for (const sample of samples) {
      const key = `${sample.slot} ${sample.provider}`;
      const before = merged.get(key);
      merged.set(key, before ? mergeTwo(before, sample) : sample);
    }
  const order = (a: TimedSample, b: TimedSample) =>
    a.slot - b.slot || providerIds.indexOf(a.provider) - providerIds.indexOf(b.provider);
  return [...merged.values()].sort(order).map(({ provider, slot, ...sample }) => ({
    provider,
    at: new Date(slot).toISOString(),
    ...sample,
  }));
}

const mergeTwo = (one: TimedSample, other: TimedSample): TimedSample => ({
  ...one,
  waiting: one.waiting ?? other.waiting,
  active: one.active ?? other.active,
  inFlight: one.inFlight ?? other.inFlight,
  concurrency: one.concurrency ?? other.concurrency,
  arrivals: one.arrivals + other.arrivals,
  ended: one.ended + other.ended,
  failed: one.failed + other.failed,
  queueMs: mergePercentiles([one.queueMs, one.ended], [other.queueMs, other.ended]),
  providerMs: mergePercentiles([one.providerMs, one.ended], [other.providerMs, other.ended]),
});

type Weighted = readonly [percentiles: Percentiles | null, weight: number];

function mergePercentiles([one, weight]: Weighted, [other, otherWeight]: Weighted): Percentiles | null {
  if (one === null || other === null) return one ?? other;
  const p50 = (one.p50 * weight + other.p50 * otherWeight) / Math.max(1, weight + otherWeight);
  return { p50: Math.round(p50), p95: Math.max(one.p95, other.p95) };
}
