/** A look at the store's clock; all in milliseconds since the epoch. */
interface ClockReading {
  /** By our clock. */
  askedAt: number;
  answeredAt: number;
  /** By the store's. */
  storeAt: number;
}

/** Processes of the release before compare deadlines by their own clocks, and BullMQ in PostgreSQL locks; more than this apart, jobs are given up or kept wrongly. */
const maxApartMs = 2000;

/** What is wrong with the clocks, if they are surely too far apart: the store has read its own at any time in between. */
export function findClockSkew({ askedAt, answeredAt, storeAt }: ClockReading): string | undefined {
  const apartMs = storeAt - (askedAt + answeredAt) / 2;
  if (Math.abs(apartMs) - (answeredAt - askedAt) / 2 <= maxApartMs) return undefined;
  const seconds = (Math.abs(apartMs) / 1000).toFixed(1);
  const direction = apartMs > 0 ? 'behind' : 'ahead of';
  return `the clock of this machine is ${seconds} s ${direction} the queue store's: synchronise both (NTP) to within 2 s`;
}

/**
 * The store's time, as this process knows it: each look at the store's clock corrects it, and between the looks it goes by a clock
 * that never jumps. So deadlines and ages are the same for all processes, whatever their machines' clocks say meanwhile.
 */
export class StoreClock {
  readonly #machineNow: () => number;
  /** The store's time less `performance.now()`, and what it may be off by; unknown before the first look. */
  #offset: { ms: number; offByMs: number } | undefined;

  /** `machineNow` is this machine's clock, in milliseconds since the epoch, which counts until the store's is known. */
  constructor(machineNow: () => number = Date.now) {
    this.#machineNow = machineNow;
  }

  /** In whole milliseconds since the epoch. */
  readonly now = (): number =>
    Math.round(this.#offset === undefined ? this.#machineNow() : performance.now() + this.#offset.ms);

  /** Takes note of what the store's clock says, and gives what is wrong with this machine's, as `findClockSkew` does. */
  async look(readStore: () => Promise<number>): Promise<string | undefined> {
    const [askedAt, startedAt] = [this.#machineNow(), performance.now()];
    const storeAt = await readStore();
    const tookMs = performance.now() - startedAt;
    this.#correct({ ms: storeAt - startedAt - tookMs / 2, offByMs: tookMs / 2 });
    return findClockSkew({ askedAt, answeredAt: this.#machineNow(), storeAt });
  }

  /** A look that took long knows less, and counts only where it contradicts. */
  #correct(seen: { ms: number; offByMs: number }): void {
    const known = this.#offset;
    const contradicts = known === undefined || Math.abs(seen.ms - known.ms) > seen.offByMs + known.offByMs;
    if (contradicts || seen.offByMs <= known.offByMs) this.#offset = seen;
    // Clocks drift apart: what was known exactly is known less so at each look.
    else this.#offset = { ms: known.ms, offByMs: known.offByMs + driftMs };
  }
}

/** Between two looks, which are seconds apart: quartz is off by less than a tenth of a millisecond a second. */
const driftMs = 1;
