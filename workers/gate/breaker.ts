import CircuitBreaker from 'opossum';

/** `closed` lets every call through, `open` none, `half-open` one at a time to probe. */
export type BreakerState = 'closed' | 'open' | 'half-open';

export interface BreakerTimes {
  /** Longest call there can be, in milliseconds; the window must be twice as long to hold calls that hang. */
  timeoutMs: number;
  /** Pause between opening and the probe, in milliseconds. */
  resetMs: number;
}

/** A call that the breakers let through. */
export interface BegunCall {
  readonly user: string | undefined;
  /** Whether it is the one call that a half-open breaker lets through, or the second beside it. */
  readonly isProbe: boolean;
  /** By `performance.now()`. */
  readonly begunAt: number;
  /** Whether it began beside another user's. */
  readonly isSecond: boolean;
}

interface BreakerOptions {
  /** Read when the first bad sample opens the windows. */
  times: () => BreakerTimes;
  onChange: (state: BreakerState) => void;
}

/** So long a probe is the only one; a little less than a second, after which the gate looks for another. */
const aloneMs = 900;
/** Below this many samples in the window the breaker stays closed. */
const volumeThreshold = 5;
const errorThresholdPercentage = 50;
/** At 0.3 requests/s five samples take 17 s. */
const minWindowMs = 30_000;
/** Good calls that are remembered while there is no bad one. */
const maxGood = 100;
/** Fast failures give many samples in this time; in the long window the good ones before would outweigh them. */
const shortWindowMs = 10_000;
/** Spent credit is paid in minutes at best: so many pauses there are to its probe. */
const creditResets = 30;
/** This many bad samples without a good one between them are enough, after any history. */
const maxBadInRow = 10;

/**
 * A circuit breaker that counts only calls that show the provider's health. opossum counts every call that it wraps, so
 * it is given a sample after the call instead. Calls end by their own signals, so its timeout is off.
 */
export class Breaker {
  /** The one call that it has let through while half-open, or the last of two. */
  probe: BegunCall | undefined;
  /** From the first bad sample on; most models never have one. */
  #windows: Windows | undefined;
  #good = { count: 0, lastAt: 0 };
  #badInRow = 0;
  #nextProbeAt = 0;
  #reason: string | undefined;
  #forced: 'open' | 'closed' | undefined;

  constructor(private readonly options: BreakerOptions) {}

  get state(): BreakerState {
    if (this.#forced) return this.#forced;
    if (this.#windows?.long.opened) return 'open';
    return this.#windows?.long.halfOpen ? 'half-open' : 'closed';
  }

  /** Why the last bad call was one; undefined while it is closed. */
  get reason(): string | undefined {
    if (this.#forced === 'open') return 'operator';
    return this.state === 'closed' ? undefined : this.#reason;
  }

  /** Time until it is half-open, in milliseconds; 0 unless samples have opened it. */
  get nextProbeMs(): number {
    return this.#windows?.long.opened ? Math.max(1, this.#nextProbeAt - performance.now()) : 0;
  }

  /** Whether its one call is under way. */
  get isProbing(): boolean {
    return this.probe !== undefined;
  }

  /**
   * Whether a call of this user may probe now: while none does, or beside that of another user which takes long, or
   * one user could leave no turn to others by a call that has no end.
   */
  isFreeFor(user: string | undefined): boolean {
    const { probe } = this;
    if (probe === undefined) return true;
    return probe.user !== user && !probe.isSecond && performance.now() - probe.begunAt >= aloneMs;
  }

  /** Whether it has counted a bad call since it was made or closed. */
  get hasCounted(): boolean {
    return this.#windows !== undefined;
  }

  /** Counts a call, unless it began before the breaker opened: it must not be taken for the probe. */
  record(sample: 'good' | 'bad', call: Pick<BegunCall, 'isProbe'>, reason?: string): void {
    const isPassedOn = call.isProbe && sample === 'good' && this.state === 'half-open';
    const isProbe = this.probe === call || isPassedOn;
    if (this.#forced || (!isProbe && this.state !== 'closed')) return;
    if (sample === 'good') {
      this.#badInRow = 0;
      this.#good = { count: Math.min(maxGood, this.#good.count + 1), lastAt: performance.now() };
    } else {
      this.#badInRow += 1;
      this.#reason = reason;
      this.#windows ??= this.#openWindows();
    }
    if (this.#windows === undefined) return;
    const { long, short } = this.#windows;
    if (isProbe && sample === 'good') long.close();
    else if (isProbe || this.#badInRow >= maxBadInRow) long.open();
    else for (const window of [long, short]) void window.fire(sample).catch(() => undefined);
  }

  /** Refuses calls from now on, without regard to samples. */
  open(reason: string): void {
    if (this.#forced) return;
    this.#reason = reason;
    // Failed probes keep the long pause, an answer ends it with its windows.
    if (reason === 'credit' && this.state !== 'open') this.dispose();
    this.#windows ??= this.#openWindows(reason === 'credit' ? creditResets : 1);
    this.#windows.long.open();
  }

  close(): void {
    this.#windows?.long.close();
  }

  /** Holds the state, independent of calls, until it is called without one. Forgets the samples. */
  force(state: 'open' | 'closed' | undefined): void {
    if (state === this.#forced) return;
    const before = this.state;
    this.dispose();
    this.#badInRow = 0;
    this.#forced = state;
    if (this.state !== before) this.options.onChange(this.state);
  }

  /** Makes a closed breaker one that has counted nothing. */
  forget(): void {
    this.dispose();
    this.#badInRow = 0;
    this.#good.count = 0;
  }

  dispose(): void {
    this.#windows?.long.shutdown();
    this.#windows?.short.shutdown();
    this.#windows = undefined;
    this.probe = undefined;
  }

  #openWindows(resets = 1): Windows {
    const { times, onChange } = this.options;
    const { timeoutMs } = times();
    const resetMs = resets * times().resetMs;
    const windowMs = Math.max(2 * timeoutMs, minWindowMs);
    const long = createWindow({ windowMs, resetMs })
      .on('open', () => {
        this.#nextProbeAt = performance.now() + resetMs;
        onChange('open');
      })
      .on('halfOpen', () => onChange('half-open'))
      .on('close', () => {
        // Without fresh windows the failures that opened it would let the next single one open it again.
        this.dispose();
        onChange('closed');
      });
    const short = createWindow({ windowMs: shortWindowMs, resetMs }).on('open', () => long.open());
    // A few failures at once do not outweigh the good calls of a moment ago.
    const ageMs = performance.now() - this.#good.lastAt;
    for (let n = 0; n < this.#good.count; n += 1) {
      if (ageMs < windowMs) void long.fire('good');
      if (ageMs < shortWindowMs) void short.fire('good');
    }
    return { long, short };
  }
}

/** The state is that of `long`; `short` only counts, and opens it. */
interface Windows {
  readonly long: Window;
  readonly short: Window;
}

type Window = CircuitBreaker<['good' | 'bad'], void>;

const createWindow = ({ windowMs, resetMs }: { windowMs: number; resetMs: number }): Window =>
  new CircuitBreaker(fulfil, {
    timeout: false,
    resetTimeout: resetMs,
    rollingCountTimeout: windowMs,
    rollingCountBuckets: 20,
    rollingPercentilesEnabled: false,
    enableSnapshots: false,
    volumeThreshold,
    errorThresholdPercentage,
  });

const badSample = new Error('bad sample');
const fulfil = (sample: 'good' | 'bad'): Promise<void> =>
  sample === 'good' ? Promise.resolve() : Promise.reject(badSample);
