import type { ProviderId } from '../../shared/contracts/contract.js';
import type { Sample } from '../../shared/contracts/history.js';

/** How busy a provider is at one moment; null where it is unknown. */
export type Load = Pick<Sample, 'waiting' | 'active' | 'inFlight' | 'concurrency'>;

/** How busy a provider was at the end of a slot, whose beginning is in milliseconds since the epoch. */
export interface LoadSample extends Load {
  readonly slot: number;
  readonly provider: ProviderId;
}

interface SampleLogDeps {
  /** How busy the providers are now; must settle within a second or two, and never reject. */
  readLoads: () => Promise<readonly (Load & { readonly provider: ProviderId })[]>;
  /** The time, in milliseconds since the epoch. */
  now?: () => number;
}

export const sampleEveryMs = 5000;
export const samplesKeptMs = 600_000;
const minApartMs = 1000;

/** How busy the fleet was, as this process saw it every five seconds of the last ten minutes. */
export class SampleLog {
  readonly #deps: Required<SampleLogDeps>;
  #samples: LoadSample[] = [];
  #timer: NodeJS.Timeout | undefined;
  #isTaking = false;

  constructor(deps: SampleLogDeps) {
    this.#deps = { now: Date.now, ...deps };
  }

  start(): this {
    const leftMs = sampleEveryMs - (this.#deps.now() % sampleEveryMs);
    // A timer may be early by a millisecond.
    const untilNext = leftMs < minApartMs ? leftMs + sampleEveryMs : leftMs;
    this.#timer = setTimeout(() => {
      void this.take();
      this.start();
    }, untilNext).unref();
    return this;
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  /** Oldest first. */
  list(): readonly LoadSample[] {
    return this.#samples;
  }

  /** Samples the five-second slot that just ended. If the clock was set back, known slots are not repeated. */
  async take(): Promise<void> {
    if (this.#isTaking) return;
    this.#isTaking = true;
    const slot = Math.round(this.#deps.now() / sampleEveryMs) * sampleEveryMs - sampleEveryMs;
    const taken = (await this.#deps.readLoads()).map((load) => ({ ...load, slot }));
    const isKept = (sample: LoadSample) => sample.slot < slot && sample.slot > slot - samplesKeptMs;
    this.#samples = [...this.#samples.filter(isKept), ...taken];
    this.#isTaking = false;
  }
}
