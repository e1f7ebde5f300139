import { Failure } from '../../shared/failures.js';
import type { BegunCall, BreakerState, BreakerTimes } from './breaker.js';
import { Breakers } from './breakers.js';
import { CallSamples } from './call-samples.js';
import { Cooldown, isLimit, type Limit } from './cooldown.js';
import { NotBegun } from './ends.js';
import type { AdmittedCall, GateChange, GatedCall } from './gated-call.js';
import type { LongCalls } from './long-calls.js';
import { patienceOf, type Waiter, WaitingJobs } from './waiting-jobs.js';

export interface CircuitOptions {
  model: string;
  times: () => BreakerTimes;
  /** Whether one more job of this user may wait here for its model. */
  hasRoom: (user: string | undefined) => boolean;
  /** Shared by the circuits of a pool. */
  longCalls: Pick<LongCalls, 'enter' | 'park' | 'wait' | 'leave'>;
  onChange: (change: GateChange) => void;
  /** Called when a 429 to this pool began a cooldown or made it longer. */
  publishLimit: (limit: Limit) => void;
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
  readonly breakers: Breakers;
  readonly #samples = new CallSamples();
  readonly #waiting = new WaitingJobs();
  /** The calls that are under way, or are about to begin, and those that wait, which have not begun. */
  readonly #calls = new Map<GatedCall, BegunCall | undefined>();
  #wasCoolingDown = false;
  /** The user who was held alone: only this user's calls begin one at a time then, so that others are not slowed. */
  #wasAlone: string | undefined;
  /** The slot of the job whose call is the one at a time after a cooldown. */
  #trial: GatedCall['slot'] | undefined;
  #lastCaller: string | undefined;
  #lastUsedAt = performance.now();
  #isClosing = false;

  constructor(private readonly options: CircuitOptions) {
    this.breakers = new Breakers({ ...options, samples: this.#samples, onChange: this.#onChange.bind(this) });
    this.cooldown = new Cooldown({ ...options, onChange: () => this.#onChange() });
  }

  /** Whether it can be dropped: it only remembers good calls, or its model is no longer called. */
  get isIdle(): boolean {
    if (this.#calls.size > 0) return false;
    if (performance.now() - this.#lastUsedAt > keptResets * this.options.times().resetMs) return true;
    return this.breakers.describe().length === 0 && this.cooldown.maxLeftMs === 0;
  }

  /** Makes the call as soon as it may begin. Throws `NotBegun` when the pool stops first, or why it cannot in time. */
  async run<T>(call: GatedCall, next: (admitted: AdmittedCall) => Promise<T>): Promise<T> {
    const { user, kind } = call;
    // A refusal has shown nothing, so the repetition waits like a first call.
    if (kind === 'retry' && this.breakers.stateFor(user) !== 'closed')
      throw new Failure('provider_unavailable');
    this.#lastUsedAt = performance.now();
    this.#calls.set(call, undefined);
    try {
      const begun = await this.#begin(call);
      call.stop.throwIfAborted();
      const admitted = this.#admit(call, begun);
      const watched = () => this.cooldown.watch(call, () => next(admitted));
      return await this.#watch(call, begun, () => this.breakers.watch(begun, admitted, watched));
    } finally {
      this.#leave(call);
      this.#calls.delete(call);
      this.#wake();
      this.options.longCalls.leave(call);
    }
  }

  close(): void {
    this.#isClosing = true;
    this.#waiting.sendBack();
  }

  dispose(): void {
    this.cooldown.dispose();
    this.breakers.dispose();
  }

  /** How long no call of this user may begin, in milliseconds; 0 when calls may. */
  #blockedMs(user: string | undefined): number {
    const { breakers, cooldown } = this;
    return breakers.stateFor(user) === 'open' ? breakers.nextProbeMs(user) : cooldown.leftMs(user);
  }

  /** Waits until the call may begin, and has a slot and a place: by then calls may be forbidden again. */
  async #begin(call: GatedCall): Promise<BegunCall> {
    for (;;) {
      await this.#whenCallsMayBegin(call);
      await call.slot.take();
      const begun = this.#calls.get(call);
      const isFree = begun?.isProbe || this.breakers.stateFor(call.user) === 'closed';
      if (!begun || !isFree || this.#blockedMs(call.user) > 0) continue;
      if (begun.isProbe || this.options.longCalls.enter(call, this.#samples.usualMs)) return begun;
      this.#leave(call);
      this.#wake();
      await this.options.longCalls.wait(call);
    }
  }

  /**
   * The trial after a cooldown is passed when its call is not limited, or has not been within a second. After a second
   * another user's call may begin beside a probe, too.
   */
  async #watch<T>({ slot, user }: GatedCall, { isProbe }: BegunCall, make: () => Promise<T>): Promise<T> {
    const isTrial = this.#trial === slot;
    if (!isTrial && !isProbe) return make();
    const pass = () => {
      if (!isTrial) return;
      this.#wasCoolingDown = false;
      if (user === this.#wasAlone) this.#wasAlone = undefined;
    };
    const timer = setTimeout(() => {
      pass();
      if (isTrial) this.#trial = undefined;
      this.#wake();
    }, trialMs);
    try {
      const result = await make();
      pass();
      return result;
    } catch (error) {
      if (!isLimit(error)) pass();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  #admit(call: GatedCall, { isProbe }: BegunCall): AdmittedCall {
    const { user, progress } = call;
    const { longCalls, hasRoom } = this.options;
    return {
      progress,
      isProbe,
      startedAt: performance.now(),
      park: () => hasRoom(user) && longCalls.park(call),
    };
  }

  async #whenCallsMayBegin(call: GatedCall): Promise<void> {
    const { kind, user } = call;
    this.#leave(call);
    if (!this.#isBehind(call) && this.#admits(call)) return;
    if (this.#isClosing && kind === 'first') throw new NotBegun();
    this.#throwIfTooLate(call);
    if (kind === 'first' && !this.options.hasRoom(user)) throw this.#withoutRoom(call);
    call.slot.park();
    this.options.longCalls.leave(call);
    const leftMs = call.leftMs();
    const patienceMs = patienceOf(call, this.breakers.stateFor(user));
    const failure = () => (patienceMs < leftMs ? this.#refusal(call) : new Failure('timeout'));
    await this.#waiting.wait(call, Math.min(patienceMs, leftMs), failure);
  }

  /** Whether others wait before it. Jobs of a user who alone is held back, or refused, delay no other user. */
  #isBehind({ user }: GatedCall): boolean {
    const isAlone = (other?: string) => this.breakers.isAlone(other) || this.cooldown.isAlone(other);
    return this.#waiting.all.some(({ call: other }) => other.user === user || !isAlone(other.user));
  }

  /** Whether a call may begin now; records that it does. */
  #admits(call: GatedCall): boolean {
    const { slot, user } = call;
    const isOneAtATime = this.#wasCoolingDown || (user !== undefined && user === this.#wasAlone);
    if (this.cooldown.leftMs(user) > 0 || (isOneAtATime && this.#trial !== undefined)) return false;
    const begun = this.breakers.begin(user);
    if (begun === undefined) return false;
    this.#calls.set(call, begun);
    if (isOneAtATime) this.#trial = slot;
    this.#lastCaller = user;
    return true;
  }

  /** Leaves the place of a call that begins alone to the next. */
  #leave(call: GatedCall): void {
    if (this.#trial === call.slot) this.#trial = undefined;
    this.breakers.drop(this.#calls.get(call));
  }

  #throwIfTooLate(call: GatedCall): void {
    const blockedMs = this.#blockedMs(call.user);
    const patienceMs = patienceOf(call, this.breakers.stateFor(call.user));
    if (blockedMs > 0 && (blockedMs > patienceMs || blockedMs >= call.leftMs())) throw this.#refusal(call);
  }

  /** Another user's waiting jobs may fill the room: then this one comes back after a pause. */
  #withoutRoom(call: GatedCall): Error {
    const isSoon = this.breakers.stateFor(call.user) === 'closed' && this.cooldown.isOfOther(call.user);
    return isSoon ? new NotBegun(true) : this.#refusal(call);
  }

  #refusal({ user }: GatedCall): Failure {
    const retryAfterMs = this.#blockedMs(user) || trialMs;
    return this.breakers.stateFor(user) === 'closed'
      ? new Failure('provider_rate_limited', { retryAfterMs })
      : new Failure('provider_unavailable', { retryAfterMs, model: this.options.model });
  }

  #onChange(state?: BreakerState, user?: string): void {
    if (this.cooldown.leftMs(undefined) > 0) this.#wasCoolingDown = true;
    this.#wasAlone = this.cooldown.aloneUser ?? this.#wasAlone;
    if (state === 'open') this.#refuseWaiters(user);
    this.#wake();
    this.options.onChange({ state, user });
  }

  /** The waiting jobs waited for the probe that failed. Running calls may hang for long, so their slots are parked. */
  #refuseWaiters(user: string | undefined): void {
    const concerns = (call: GatedCall) => user === undefined || call.user === user;
    for (const { call, reject } of this.#waiting.all) if (concerns(call)) reject(this.#refusal(call));
    for (const call of this.#calls.keys()) if (concerns(call)) call.slot.park();
  }

  /** Starts the calls that may begin, and refuses jobs that come too late. The user of the last probe comes last. */
  #wake(): void {
    const wasLast = ({ call }: Waiter) =>
      Number(this.breakers.all.state === 'half-open' && call.user === this.#lastCaller);
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
