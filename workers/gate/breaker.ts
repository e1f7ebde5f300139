import CircuitBreaker from 'opossum';

/** `closed` lets every call through, `open` none, `half-open` one at a time to probe. */
export type BreakerState = 'closed' | 'open' | 'half-open';

/** The meaning of a call's end: a failure (`isBad`), an answer (`isBad: false`), or nothing. */
export interface Ending {
  readonly isBad?: boolean;
  readonly reason?: string;
  /** Whether no user can have brought it about. */
  readonly isCertain?: true;
  /** Opens the breaker at once, for at least this many milliseconds. */
  readonly pauseMs?: number;
}

export interface BreakerOptions {
  /** How long a call counts, in milliseconds. */
  windowMs(): number;
  /** How many failures in a row open the breaker, after any history. */
  readonly maxInRow: number;
  /** How long it is open after the nth opening since an answer, in milliseconds. */
  pauseMs(opens: number): number;
  /** `pauseMs` is for how long it has opened, in milliseconds. */
  onChange(state: BreakerState, pauseMs?: number): void;
}

/** The breaker opens when more than half of at least so many calls in the window have failed. */
const volumeThreshold = 5;
const errorThresholdPercentage = 50;
const rollingCountBuckets = 6;

type Circuit = CircuitBreaker<[make: () => Promise<unknown>, ending: () => Ending], unknown>;

/**
 * A breaker around calls: opossum's, with failures in a row and pauses that grow, which opossum lacks. Calls end by
 * their own signals, so its time-out is off. Each opening and each closing is a fresh opossum: a call that began before
 * ends in the old one, so that it is neither taken for the probe nor counted.
 */
export class Breaker {
  #circuit: Circuit | undefined;
  #inRow = 0;
  #opens = 0;
  #endsAt = 0;
  /** Why it opened last. */
  reason: string | undefined;

  constructor(private readonly options: BreakerOptions) {}

  get state(): BreakerState {
    if (this.#circuit?.opened) return 'open';
    return this.#circuit?.halfOpen ? 'half-open' : 'closed';
  }

  /** Whether its one call is under way. */
  get isProbing(): boolean {
    return this.state === 'half-open' && this.#circuit?.pendingClose === false;
  }

  /** Time until a call may begin, in milliseconds: 0 if one may now, infinite while a probe decides. */
  get leftMs(): number {
    if (this.isProbing) return Number.POSITIVE_INFINITY;
    return this.state === 'open' ? Math.max(1, this.#endsAt - performance.now()) : 0;
  }

  /** Makes a call, which has to be allowed now. `ending` is asked once it has failed. */
  fire<T>(make: () => Promise<T>, ending: () => Ending): Promise<T> {
    this.#circuit ??= this.#begin({ closed: true });
    return this.#circuit.fire(make, ending) as Promise<T>;
  }

  /** Lets no call begin for a pause, or for so long if that is longer. */
  open(pauseMs = 0, reason = this.reason): void {
    this.#opens += 1;
    const longestMs = Math.max(pauseMs, this.options.pauseMs(this.#opens));
    this.hold(longestMs, reason);
    this.options.onChange('open', longestMs);
  }

  /** The same for just so long, without a report. */
  hold(resetTimeout: number, reason: string | undefined): void {
    this.reason = reason;
    this.#endsAt = performance.now() + resetTimeout;
    this.#replace({ closed: false }, resetTimeout);
  }

  /** Lets the next call probe: the one that did says nothing. */
  probeAgain(): void {
    this.#replace({ closed: false, halfOpen: true });
    this.options.onChange('half-open');
  }

  /** Closes it, unless anything else has changed it since. */
  get closing(): () => void {
    const circuit = this.#circuit;
    return () => void (circuit === this.#circuit && circuit?.close());
  }

  /** Closes it without a report, and forgets all that it has counted. */
  forget(): void {
    this.#circuit?.shutdown();
    this.#circuit = undefined;
    [this.#inRow, this.#opens] = [0, 0];
  }

  #replace(state: { closed: false; halfOpen?: true }, resetTimeout?: number): void {
    this.#circuit?.shutdown();
    this.#circuit = this.#begin(state, resetTimeout);
  }

  #begin(state: { closed: boolean; halfOpen?: true }, resetTimeout = 1): Circuit {
    // opossum gives it the arguments of `fire`, too; its types do not say so.
    const isFiltered = (_error: unknown, _make: unknown, ending: () => Ending) =>
      circuit !== this.#circuit || !this.#counts(ending());
    const options = {
      state,
      resetTimeout,
      volumeThreshold,
      errorThresholdPercentage,
      rollingCountBuckets,
      timeout: false,
      rollingPercentilesEnabled: false,
      enableSnapshots: false,
      rollingCountTimeout: this.options.windowMs(),
      errorFilter: isFiltered as (error: unknown) => boolean,
    } as const;
    const make = (call: () => Promise<unknown>, _ending: () => Ending) =>
      call().then((result) => {
        this.#inRow = 0;
        return result;
      });
    const circuit: Circuit = new CircuitBreaker(make, options);
    const close = () => {
      this.forget();
      this.options.onChange('closed');
    };
    return circuit
      .on('open', () => this.open())
      .on('halfOpen', () => this.options.onChange('half-open'))
      .on('close', close);
  }

  /** Whether opossum is to count this end as a failure; any other end closes a half-open breaker. */
  #counts({ isBad, reason, pauseMs }: Ending): boolean {
    if (isBad === false) this.#inRow = 0;
    if (!isBad) return false;
    this.#inRow += 1;
    this.reason = reason ?? this.reason;
    if (pauseMs === undefined && this.#inRow < this.options.maxInRow) return true;
    this.open(pauseMs);
    return false;
  }
}
