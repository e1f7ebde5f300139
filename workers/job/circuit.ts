import { Failure } from '../../shared/failures.js';
import { Breaker, type BreakerState, type BreakerTimes } from './breaker.js';
import { CallSamples } from './call-samples.js';
import { Cooldown, isLimit } from './cooldown.js';
import { RetryBudget } from './retry.js';
import type { Slot } from './slots.js';
import { type DescribedBreaker, UserBreaker } from './user-breaker.js';
import { type CallingJob, type CallKind, NotBegun, patienceOf, WaitingJobs } from './waiting-jobs.js';

export interface CircuitOptions {
  model: string;
  times: () => BreakerTimes;
  /** The clock of the deadlines, in milliseconds since the epoch. */
  now?: () => number;
  /** Whether one more job may wait here for its model. */
  hasRoom: () => boolean;
  /** Called when the breaker (of all, or of this user) or the cooldown has changed. */
  onChange: (breaker?: BreakerState, user?: string) => void;
  /** Called with the length of a cooldown that a 429 to this pool began or extended, in milliseconds. */
  publishLimit: (cooldownMs: number) => void;
}

/** A model without calls is remembered as failing for this many pauses of its breaker. */
const keptResets = 10;
/** After a cooldown the second call may begin once the first has gone this long without a 429. */
const trialMs = 1000;

/**
 * Decides when the calls of one model may begin: holds its breakers and its cooldown. While one of them forbids calls,
 * jobs wait here in order, their slots parked; a job whose deadline comes first is refused at once, and all are when a
 * probe fails. Afterwards calls begin one at a time: until one is answered when the breaker was open, until one is not
 * limited after a cooldown.
 */
export class Circuit {
  readonly budget = new RetryBudget();
  readonly #options: CircuitOptions;
  readonly #now: () => number;
  readonly #breaker: Breaker;
  readonly #userBreaker: UserBreaker;
  readonly #cooldown: Cooldown;
  readonly #waiting = new WaitingJobs();
  /** The jobs that call, or are about to. */
  readonly #calling = new Set<CallingJob>();
  #wasCoolingDown = false;
  /** The slot of the job whose call is the one at a time. */
  #trial: Slot | undefined;
  /** The slot of the job whose call probes for the user that a breaker refuses. */
  #userProbe: Slot | undefined;
  #lastCaller: string | undefined;
  #lastUsedAt = performance.now();
  #isClosing = false;

  constructor(options: CircuitOptions) {
    const { times, publishLimit, now = Date.now } = options;
    this.#options = options;
    this.#now = now;
    this.#userBreaker = new UserBreaker({
      resetMs: () => times().resetMs,
      onChange: (state, user) => this.#onChange(state, user),
    });
    this.#breaker = new Breaker({
      times,
      samples: new CallSamples(this.#userBreaker),
      onChange: (state) => this.#onChange(state),
    });
    this.#cooldown = new Cooldown({ onChange: () => this.#onChange(), publishLimit });
  }

  /** The breaker of all users; while that is closed, the breaker of one user. */
  get breaker(): DescribedBreaker {
    return this.#breaker.state === 'closed' ? this.#userBreaker : this.#breaker;
  }

  get cooldown(): Pick<Cooldown, 'leftMs' | 'extend'> {
    return this.#cooldown;
  }

  /** Whether it can be dropped: it only remembers good calls, or its model is no longer called. */
  get isIdle(): boolean {
    if (this.#calling.size > 0) return false;
    if (performance.now() - this.#lastUsedAt > keptResets * this.#options.times().resetMs) return true;
    return this.breaker.state === 'closed' && this.#cooldown.leftMs === 0;
  }

  /**
   * Makes the call as soon as it may begin. Throws `NotBegun` when the pool stops first, the `Failure` for which it cannot
   * begin in time, or whatever the call throws.
   */
  async run<T>(job: CallingJob, kind: CallKind, call: (onReply: () => void) => Promise<T>): Promise<T> {
    const { slot, user } = job;
    if (kind.isRetry && this.#stateFor(user) !== 'closed') throw new Failure('provider_unavailable');
    this.#lastUsedAt = performance.now();
    this.#calling.add(job);
    try {
      do {
        await this.#whenCallsMayBegin(job, kind);
        await slot.take();
        // Calls may be forbidden again by the time the job has a slot.
      } while (this.#blockedMs(user) > 0);
      job.stop.throwIfAborted();
      const watched = (onReply: () => void) => this.#cooldown.watch(() => call(onReply), kind);
      const caller = { user, isUsersProbe: this.#userProbe === slot };
      return await this.#watch(slot, () => this.#breaker.run(watched, caller));
    } finally {
      this.#calling.delete(job);
      this.#endTrial(slot);
      this.#wake();
    }
  }

  /** Has the waiting jobs go back to their queue, except for retries: their first calls were made here. */
  close(): void {
    this.#isClosing = true;
    for (const waiter of this.#waiting.all) if (!waiter.isRetry) waiter.reject(new NotBegun());
  }

  /** Holds the breaker closed until it is called without a state. */
  force(state: 'closed' | undefined): void {
    this.#breaker.force(state);
    this.#userBreaker.holdClosed(state !== undefined);
  }

  dispose(): void {
    this.#cooldown.dispose();
    this.#breaker.dispose();
    this.#userBreaker.dispose();
  }

  #stateFor(user: string | undefined): BreakerState {
    const { state } = this.#breaker;
    return state === 'closed' ? this.#userBreaker.stateFor(user) : state;
  }

  /** How long no call of this user may begin, in milliseconds; 0 when calls may. */
  #blockedMs(user: string | undefined): number {
    return this.#stateFor(user) === 'open' ? this.breaker.nextProbeMs : this.#cooldown.leftMs;
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
    this.#endTrial(job.slot);
    if (!this.#isBehind(job) && this.#admits(job)) return;
    if (this.#isClosing && !kind.isRetry) throw new NotBegun();
    this.#throwIfTooLate(job);
    if (!kind.isRetry && !this.#options.hasRoom()) throw this.#refusal(job);
    job.slot.park();
    const leftMs = job.deadline - this.#now();
    const patienceMs = patienceOf(job, this.#stateFor(job.user));
    const failure = () => (patienceMs < leftMs ? this.#refusal(job) : new Failure('timeout'));
    await this.#waiting.wait({ ...job, ...kind }, { ms: Math.min(patienceMs, leftMs), failure });
  }

  /** Whether others wait before it. Jobs that wait for one user's breaker delay no other user. */
  #isBehind({ user }: CallingJob): boolean {
    return this.#waiting.all.some(
      (other) => other.user === user || this.#userBreaker.stateFor(other.user) === 'closed',
    );
  }

  /** Whether a call may begin now; records it as the one at a time when it begins alone. */
  #admits({ slot, user }: CallingJob): boolean {
    if (this.#blockedMs(user) > 0 || (this.#isOneAtATime && this.#trial !== undefined)) return false;
    const isUsersProbe = this.#userBreaker.stateFor(user) === 'half-open';
    if (isUsersProbe && this.#userProbe !== undefined) return false;
    if (isUsersProbe) this.#userProbe = slot;
    if (this.#isOneAtATime) this.#trial = slot;
    this.#lastCaller = user;
    return true;
  }

  #endTrial(slot: Slot): void {
    if (this.#trial === slot) this.#trial = undefined;
    if (this.#userProbe === slot) this.#userProbe = undefined;
  }

  #throwIfTooLate(job: CallingJob): void {
    const blockedMs = this.#blockedMs(job.user);
    const isTooLong =
      blockedMs > patienceOf(job, this.#stateFor(job.user)) || this.#now() + blockedMs >= job.deadline;
    if (blockedMs > 0 && isTooLong) throw this.#refusal(job);
  }

  #refusal({ user }: CallingJob): Failure {
    const retryAfterMs = this.#blockedMs(user) || trialMs;
    return this.#stateFor(user) === 'closed'
      ? new Failure('provider_rate_limited', { retryAfterMs })
      : new Failure('provider_unavailable', { retryAfterMs, model: this.#options.model });
  }

  #onChange(state?: BreakerState, user?: string): void {
    if (this.#cooldown.leftMs > 0) this.#wasCoolingDown = true;
    if (state === 'open') this.#refuseWaiters(user);
    this.#wake();
    this.#options.onChange(state, user);
  }

  /** The waiting jobs have waited for the probe that has failed. Running calls may hang for long: their slots are parked. */
  #refuseWaiters(user: string | undefined): void {
    const concerns = (job: CallingJob) => user === undefined || job.user === user;
    for (const waiter of this.#waiting.all) if (concerns(waiter)) waiter.reject(this.#refusal(waiter));
    for (const job of this.#calling) if (concerns(job)) job.slot.park();
  }

  /** Starts the calls that may begin, and refuses those that cannot in time. The user of the last probe comes last. */
  #wake(): void {
    const wasLast = ({ user }: CallingJob) =>
      Number(this.#breaker.state === 'half-open' && user === this.#lastCaller);
    for (const waiter of this.#waiting.all.toSorted((a, b) => wasLast(a) - wasLast(b))) {
      try {
        this.#throwIfTooLate(waiter);
        if (this.#admits(waiter)) waiter.begin();
      } catch (reason) {
        waiter.reject(reason);
      }
    }
  }
}
