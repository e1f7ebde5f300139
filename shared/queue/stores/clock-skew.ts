/**
 * The store's time as this process knows it: each reading of the store's clock corrects it, and a monotonic clock
 * advances it in between. So it is the same for all processes, even if their machines' clocks differ.
 */
export class StoreClock {
  readonly #machineNow: () => number;
  /** The store's time minus `performance.now()`, and its maximum error; unknown before the first reading. */
  #offset: { ms: number; errorMs: number } | undefined;

  /** `machineNow` is this machine's clock, in milliseconds since the epoch, used until the store's time is known. */
  constructor(machineNow: () => number = Date.now) {
    this.#machineNow = machineNow;
  }

  /** In whole milliseconds since the epoch. */
  readonly now = (): number =>
    Math.round(this.#offset === undefined ? this.#machineNow() : performance.now() + this.#offset.ms);

  /** Corrects the time by the store's clock, and describes the skew of this machine's clock if it is too large. */
  async sync(readStore: () => Promise<number>): Promise<string | undefined> {
    const [askedAt, startedAt] = [this.#machineNow(), performance.now()];
    const storeAt = await readStore();
    const tookMs = performance.now() - startedAt;
    this.#correct({ ms: storeAt - startedAt - tookMs / 2, errorMs: tookMs / 2 });
    const answeredAt = this.#machineNow();
    return describeSkew(storeAt - (askedAt + answeredAt) / 2, answeredAt - askedAt);
  }

  /** A slow reading is less exact and counts only where it contradicts the known offset. */
  #correct(seen: { ms: number; errorMs: number }): void {
    const known = this.#offset;
    const contradicts = known === undefined || Math.abs(seen.ms - known.ms) > seen.errorMs + known.errorMs;
    if (contradicts || seen.errorMs <= known.errorMs) this.#offset = seen;
    // Clocks drift: the known offset becomes less exact with each reading.
    else this.#offset = { ms: known.ms, errorMs: known.errorMs + driftMs };
  }
}

/** Between two readings, which are seconds apart: quartz drifts by less than a tenth of a millisecond per second. */
const driftMs = 1;

/** BullMQ compares locks in PostgreSQL by its machine's clock: with more skew, jobs are given up or kept wrongly. */
const maxApartMs = 2000;

/** Describes clock skew that is certainly too large: the store may have read its clock at any time in between. */
function describeSkew(apartMs: number, tookMs: number): string | undefined {
  if (Math.abs(apartMs) - tookMs / 2 <= maxApartMs) return undefined;
  const seconds = (Math.abs(apartMs) / 1000).toFixed(1);
  const direction = apartMs > 0 ? 'behind' : 'ahead of';
  return `the clock of this machine is ${seconds} s ${direction} the queue store's: synchronise both (NTP) to within 2 s`;
}
