import { Failure } from '../../shared/failures.js';
import { Breaker, type BreakerState, type BreakerTimes } from './breaker.js';
import { CallSamples } from './call-samples.js';
import { Cooldown, isLimit } from './cooldown.js';
import type { Slot } from './slots.js';

/** Why a job that has made no call goes back to its queue: another worker may make it. */
export class NotBegun extends Error {
  override readonly name = 'NotBegun';
}

/** A job that wants to call a model. */
export interface CallingJob {
  /** When whoever asked stops waiting, in milliseconds since the epoch. */
  readonly deadline: number;
  /** How long it waits at most for a model that is limited, in milliseconds; absent means until the deadline. */
  readonly patienceMs?: number;
  /** Ends the job's wait. */
  readonly stop: AbortSignal;
  readonly slot: Slot;
}

export interface CallKind {
  readonly isRetry: boolean;
}

export interface CircuitOptions {
  /** Of the breaker. */
  times: () => BreakerTimes;
  /** The clock of the deadlines, in milliseconds since the epoch. */
  now?: () => number;
  /** Whether one more job may wait here for its model. */
  hasRoom: () => boolean;
  /** Called when the breaker or the cooldown has changed. */
  onChange: (breaker?: BreakerState) => void;
  /** Called with the length of a cooldown that a 429 to this pool began or extended, in milliseconds. */
  publishLimit: (cooldownMs: number) => void;
}

interface Waiter extends CallingJob, CallKind {
  begin(): void;
  reject(reason: unknown): void;
}

/** A job that does not wait until its deadline waits no longer than this for a probe, which may fail, in milliseconds. */
const probePatienceMs = 500;
/** After a cooldown the second call may begin once the first has gone this long without a 429. */
const trialMs = 1000;

/**
 * Decides when the calls of one model may begin: holds its breaker and its cooldown. While either forbids calls, jobs wait here in
 * order, their slots parked; a job whose deadline comes first is refused at once, and all are when a probe fails. Afterwards
 * calls begin one at a time: until one is answered when the breaker was open, until one is not limited after a cooldown.
 */
export class Circuit {
  readonly #options: CircuitOptions;
  readonly #breaker: Breaker;
  readonly #cooldown: Cooldown;
  readonly #waiters = new Set<Waiter>();
  /** The slots of the jobs that call, or are about to. */
  readonly #calling = new Set<Slot>();
  #wasCoolingDown = false;
  /** The slot of the job whose call is the one at a time. */
  #trial: Slot | undefined;
  #isClosing = false;

  constructor(options: CircuitOptions) {
    const { times, publishLimit } = options;
    this.#options = options;
    this.#breaker = new Breaker({
      times,
      samples: new CallSamples(),
      onChange: (state) => this.#onChange(state),
    });
    this.#cooldown = new Cooldown({ onChange: () => this.#onChange(), publishLimit });
  }

  get breaker(): Pick<Breaker, 'state' | 'nextProbeMs' | 'reason'> {
    return this.#breaker;
  }

  get cooldown(): Pick<Cooldown, 'leftMs' | 'extend'> {
    return this.#cooldown;
  }

  /** Whether it can be dropped: only the memory of good calls would be lost. */
  get isIdle(): boolean {
    const isBusy = this.#calling.size > 0 || this.#waiters.size > 0;
    return !isBusy && this.#breaker.state === 'closed' && this.#cooldown.leftMs === 0;
  }

  /**
   * Makes the call as soon as it may begin. Throws `NotBegun` when the pool stops first, the `Failure` for which it cannot
   * begin in time, or whatever the call throws.
   */
  async run<T>(job: CallingJob, kind: CallKind, call: (onReply: () => void) => Promise<T>): Promise<T> {
    if (kind.isRetry && this.#breaker.state !== 'closed') throw new Failure('provider_unavailable');
    const { slot } = job;
    this.#calling.add(slot);
    try {
      do {
        await this.#whenCallsMayBegin(job, kind);
        await slot.take();
        // Calls may be forbidden again by the time the job has a slot.
      } while (this.#blockedMs > 0);
      job.stop.throwIfAborted();
      return await this.#watch(slot, () =>
        this.#breaker.run((onReply) => this.#cooldown.watch(() => call(onReply), kind)),
      );
    } finally {
      this.#calling.delete(slot);
      if (this.#trial === slot) this.#trial = undefined;
      this.#wake();
    }
  }

  /** Has the waiting jobs go back to their queue, except for retries: their first calls were made here. */
  close(): void {
    this.#isClosing = true;
    for (const waiter of [...this.#waiters]) if (!waiter.isRetry) waiter.reject(new NotBegun());
  }

  /** Holds the breaker closed until it is called without a state. */
  force(state: 'closed' | undefined): void {
    this.#breaker.force(state);
  }

  /** Ends its timers; to be called once no job is left. */
  dispose(): void {
    this.#cooldown.dispose();
    this.#breaker.dispose();
  }

  /** How long no call may begin, in milliseconds; 0 when calls may. */
  get #blockedMs(): number {
    return this.#breaker.state === 'open' ? this.#breaker.nextProbeMs : this.#cooldown.leftMs;
  }

  #now(): number {
    return this.#options.now?.() ?? Date.now();
  }

  get #isOneAtATime(): boolean {
    return this.#wasCoolingDown || this.#breaker.state === 'half-open';
  }

  /** The trial after a cooldown is passed when its call is not limited, or has not been within a second. */
  async #watch<T>(slot: Slot, call: () => Promise<T>): Promise<T> {
    if (this.#trial !== slot) return call();
    const pass = () => {
      this.#wasCoolingDown = false;
      if (!this.#isOneAtATime) this.#trial = undefined;
      this.#wake();
    };
    const timer = setTimeout(pass, trialMs);
    try {
      const result = await call();
      this.#wasCoolingDown = false;
      return result;
    } catch (error) {
      if (!isLimit(error)) this.#wasCoolingDown = false;
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  async #whenCallsMayBegin(job: CallingJob, kind: CallKind): Promise<void> {
    if (this.#trial === job.slot) this.#trial = undefined;
    if (this.#waiters.size === 0 && this.#admits(job.slot)) return;
    if (this.#isClosing && !kind.isRetry) throw new NotBegun();
    this.#throwIfTooLate(job);
    if (!kind.isRetry && !this.#options.hasRoom()) throw this.#refusal();
    job.slot.park();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter: Waiter = { ...job, ...kind, begin: resolve, reject };
    const onStop = () => reject(job.stop.reason);
    const leftMs = job.deadline - this.#now();
    const patienceMs = this.#patienceOf(job);
    const refuse = () => reject(patienceMs < leftMs ? this.#refusal() : new Failure('timeout'));
    const timer = setTimeout(refuse, Math.min(patienceMs, leftMs));
    this.#waiters.add(waiter);
    job.stop.addEventListener('abort', onStop);
    if (job.stop.aborted) onStop();
    try {
      await promise;
    } finally {
      clearTimeout(timer);
      job.stop.removeEventListener('abort', onStop);
      this.#waiters.delete(waiter);
    }
  }

  /** Whether a call may begin now; records it as the trial when it begins alone. */
  #admits(slot: Slot): boolean {
    if (this.#blockedMs > 0 || (this.#isOneAtATime && this.#trial !== undefined)) return false;
    if (this.#isOneAtATime) this.#trial = slot;
    return true;
  }

  #throwIfTooLate(job: CallingJob): void {
    const blockedMs = this.#blockedMs;
    const isTooLong = blockedMs > this.#patienceOf(job) || this.#now() + blockedMs >= job.deadline;
    if (blockedMs > 0 && isTooLong) throw this.#refusal();
  }

  #patienceOf({ patienceMs }: CallingJob): number {
    if (patienceMs === undefined) return Number.POSITIVE_INFINITY;
    return this.#breaker.state === 'closed' ? patienceMs : Math.min(patienceMs, probePatienceMs);
  }

  #refusal(): Failure {
    const isLimited = this.#breaker.state === 'closed';
    return new Failure(isLimited ? 'provider_rate_limited' : 'provider_unavailable', {
      retryAfterMs: this.#blockedMs || trialMs,
    });
  }

  #onChange(state?: BreakerState): void {
    if (this.#cooldown.leftMs > 0) this.#wasCoolingDown = true;
    if (state === 'open') this.#refuseWaiters();
    this.#wake();
    this.#options.onChange(state);
  }

  /** The waiting jobs have waited for the probe that has failed. Running calls may hang for long: their slots are parked. */
  #refuseWaiters(): void {
    for (const waiter of [...this.#waiters]) waiter.reject(this.#refusal());
    for (const slot of this.#calling) slot.park();
  }

  /** Lets the calls begin that may, and refuses those that cannot in time. */
  #wake(): void {
    for (const waiter of [...this.#waiters]) {
      try {
        this.#throwIfTooLate(waiter);
      } catch (reason) {
        waiter.reject(reason);
        this.#waiters.delete(waiter);
        continue;
      }
      if (!this.#admits(waiter.slot)) continue;
      this.#waiters.delete(waiter);
      waiter.begin();
    }
  }
}
