import { Failure } from '../../shared/failures.js';
import { Breaker, type BreakerState, type BreakerTimes } from './breaker.js';
import { CallSamples } from './call-samples.js';
import type { CompilingCalls } from './compiling-calls.js';
import { Cooldown, isLimit } from './cooldown.js';
import { NotBegun } from './ends.js';
import type { AdmittedCall, GatedCall } from './gated-call.js';
import type { Slot } from './slots.js';
import { type DescribedBreaker, UserBreaker } from './user-breaker.js';
import { patienceOf, type Waiter, WaitingJobs } from './waiting-jobs.js';

export interface CircuitOptions {
  model: string;
  times: () => BreakerTimes;
  /** Whether one more job may wait here for its model. */
  hasRoom: () => boolean;
  /** Shared by the circuits of a pool. */
  compiling: Pick<CompilingCalls, 'isNew' | 'recordUse' | 'outlast'>;
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
  readonly cooldown: Cooldown;
  readonly #options: CircuitOptions;
  readonly #breaker: Breaker;
  readonly #userBreaker: UserBreaker;
  readonly #waiting = new WaitingJobs();
  /** The calls that are under way, or are about to begin. */
  readonly #calls = new Set<GatedCall>();
  #wasCoolingDown = false;
  /** The slot of the job whose call is the one at a time. */
  #trial: Slot | undefined;
  /** The slot of the job whose call probes for the user that a breaker refuses. */
  #userProbe: Slot | undefined;
  #lastCaller: string | undefined;
  #lastUsedAt = performance.now();
  #isClosing = false;

  constructor(options: CircuitOptions) {
    const { times, publishLimit } = options;
    this.#options = options;
    this.#userBreaker = new UserBreaker({
      resetMs: () => times().resetMs,
      onChange: (state, user) => this.#onChange(state, user),
    });
    this.#breaker = new Breaker({
      times,
      samples: new CallSamples(this.#userBreaker),
      onChange: (state) => this.#onChange(state),
    });
    this.cooldown = new Cooldown({ onChange: () => this.#onChange(), publishLimit });
  }

  /** The breaker of all users; while that is closed, the breaker of one user. */
  get breaker(): DescribedBreaker {
    return this.#breaker.state === 'closed' ? this.#userBreaker : this.#breaker;
  }

  /** Whether it can be dropped: it only remembers good calls, or its model is no longer called. */
  get isIdle(): boolean {
    if (this.#calls.size > 0) return false;
    if (performance.now() - this.#lastUsedAt > keptResets * this.#options.times().resetMs) return true;
    return this.breaker.state === 'closed' && this.cooldown.leftMs === 0;
  }

  /** Makes the call as soon as it may begin. Throws `NotBegun` when the pool stops first, or why it cannot in time. */
  async run<T>(call: GatedCall, next: (admitted: AdmittedCall) => Promise<T>): Promise<T> {
    const { slot, user, kind, schema } = call;
    // A refusal has shown nothing, so the repetition waits like a first call.
    if (kind === 'retry' && this.#stateFor(user) !== 'closed') throw new Failure('provider_unavailable');
    this.#lastUsedAt = performance.now();
    this.#calls.add(call);
    try {
      do {
        await this.#whenCallsMayBegin(call);
        await slot.take();
        // Calls may be forbidden again by the time the job has a slot.
      } while (this.#blockedMs(user) > 0);
      call.stop.throwIfAborted();
      const admitted = this.#admit(call);
      const watched = () => this.cooldown.watch(call, () => next(admitted));
      const result = await this.#watch(slot, () => this.#breaker.run(admitted, watched));
      this.#options.compiling.recordUse(schema);
      return result;
    } finally {
      this.#calls.delete(call);
      this.#endTrial(slot);
      this.#wake();
    }
  }

  /** Has the waiting jobs go back to their queue, except for retries: their first calls were made here. */
  close(): void {
    this.#isClosing = true;
    for (const waiter of this.#waiting.all) if (waiter.call.kind === 'first') waiter.reject(new NotBegun());
  }

  /** Holds the breaker closed until it is called without a state. */
  force(state: 'closed' | undefined): void {
    this.#breaker.force(state);
    this.#userBreaker.holdClosed(state !== undefined);
  }

  dispose(): void {
    this.cooldown.dispose();
    this.#breaker.dispose();
    this.#userBreaker.dispose();
  }

  #stateFor(user: string | undefined): BreakerState {
    const { state } = this.#breaker;
    return state === 'closed' ? this.#userBreaker.stateFor(user) : state;
  }

  /** How long no call of this user may begin, in milliseconds; 0 when calls may. */
  #blockedMs(user: string | undefined): number {
    return this.#stateFor(user) === 'open' ? this.breaker.nextProbeMs : this.cooldown.leftMs;
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

  #admit(call: GatedCall): AdmittedCall {
    const { user, progress, slot, schema } = call;
    const { compiling, hasRoom } = this.#options;
    const isUsersProbe = this.#userProbe === slot;
    const isCompiling = compiling.isNew(schema);
    const park = () => hasRoom() && slot.park();
    const outlast = () => compiling.outlast(call);
    const startedAt = performance.now();
    return { user, progress, isProbe: false, isUsersProbe, isCompiling, startedAt, park, outlast };
  }

  async #whenCallsMayBegin(call: GatedCall): Promise<void> {
    const { kind } = call;
    this.#endTrial(call.slot);
    if (!this.#isBehind(call) && this.#admits(call)) return;
    if (this.#isClosing && kind === 'first') throw new NotBegun();
    this.#throwIfTooLate(call);
    if (kind === 'first' && !this.#options.hasRoom()) throw this.#refusal(call);
    call.slot.park();
    const leftMs = call.leftMs();
    const patienceMs = patienceOf(call, this.#stateFor(call.user));
    const failure = () => (patienceMs < leftMs ? this.#refusal(call) : new Failure('timeout'));
    await this.#waiting.wait(call, Math.min(patienceMs, leftMs), failure);
  }

  /** Whether others wait before it. Jobs that wait for one user's breaker delay no other user. */
  #isBehind({ user }: GatedCall): boolean {
    return this.#waiting.all.some(
      ({ call: other }) => other.user === user || this.#userBreaker.stateFor(other.user) === 'closed',
    );
  }

  /** Whether a call may begin now; records it as the one at a time when it begins alone. */
  #admits({ slot, user }: GatedCall): boolean {
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

  #throwIfTooLate(call: GatedCall): void {
    const blockedMs = this.#blockedMs(call.user);
    const isTooLong = blockedMs > patienceOf(call, this.#stateFor(call.user)) || blockedMs >= call.leftMs();
    if (blockedMs > 0 && isTooLong) throw this.#refusal(call);
  }

  #refusal({ user }: GatedCall): Failure {
    const retryAfterMs = this.#blockedMs(user) || trialMs;
    return this.#stateFor(user) === 'closed'
      ? new Failure('provider_rate_limited', { retryAfterMs })
      : new Failure('provider_unavailable', { retryAfterMs, model: this.#options.model });
  }

  #onChange(state?: BreakerState, user?: string): void {
    if (this.cooldown.leftMs > 0) this.#wasCoolingDown = true;
    if (state === 'open') this.#refuseWaiters(user);
    this.#wake();
    this.#options.onChange(state, user);
  }

  /** The waiting jobs waited for the probe that failed. Running calls may hang for long, so their slots are parked. */
  #refuseWaiters(user: string | undefined): void {
    const concerns = (call: GatedCall) => user === undefined || call.user === user;
    for (const { call, reject } of this.#waiting.all) if (concerns(call)) reject(this.#refusal(call));
    for (const call of this.#calls) if (concerns(call)) call.slot.park();
  }

  /** Starts the calls that may begin, and refuses jobs that come too late. The user of the last probe comes last. */
  #wake(): void {
    const wasLast = ({ call }: Waiter) =>
      Number(this.#breaker.state === 'half-open' && call.user === this.#lastCaller);
    for (const waiter of this.#waiting.all.toSorted((a, b) => wasLast(a) - wasLast(b))) {
      try {
        this.#throwIfTooLate(waiter.call);
        if (this.#admits(waiter.call)) waiter.begin();
      } catch (reason) {
        waiter.reject(reason);
      }
    }
  }
}
