import { Failure } from '../../shared/failures.js';
import { type Breaker, type BreakerState, createBreaker } from './breaker.js';
import { CallSamples } from './call-samples.js';
import { type Cooldown, createCooldown, isLimit } from './cooldown.js';
import type { Slot } from './slots.js';

/** Why a job makes no call here: another worker may do it. */
export class NotBegun extends Error {
  override readonly name = 'NotBegun';
}

/** A job that wants to call a model. */
export interface Caller {
  /** When its own caller stops waiting, in milliseconds since the epoch. */
  readonly deadline: number;
  /** Ends its wait. */
  readonly stop: AbortSignal;
  readonly slot: Slot;
}

export interface CallKind {
  readonly isRetry: boolean;
}

export interface CircuitOptions {
  timeoutMs: number;
  resetMs: number;
  /** The clock of the deadlines, in milliseconds since the epoch. */
  now?: () => number;
  /** Whether one more job may wait here for its model. */
  hasRoom: () => boolean;
  /** Called when the breaker or the cooldown has changed. */
  onChange: (breaker?: BreakerState) => void;
  /** Called with the length of a cooldown that a 429 to this pool began, in milliseconds. */
  publishLimit: (holdMs: number) => void;
}

interface Waiter extends Caller, CallKind {
  begin(): void;
  refuse(reason: unknown): void;
}

/** After a cooldown the second call may begin once the first has gone this long without a 429. */
const trialMs = 1000;

/**
 * What decides when the calls of one model may begin: its breaker and its cooldown. While either is closed to calls, jobs wait
 * here without a slot, in their order; one whose deadline comes first is refused at once, and all are when a probe fails. What
 * comes after that begins with one call at a time: with a half-open breaker until one is well, after a cooldown until one has not
 * been limited.
 */
export class Circuit {
  readonly #options: CircuitOptions;
  readonly #breaker: Breaker;
  readonly #cooldown: Cooldown;
  readonly #waiters = new Set<Waiter>();
  /** The slots of the jobs that call, or are about to. */
  readonly #calling = new Set<Slot>();
  #wasHeld = false;
  /** Whose call is the one at a time. */
  #trial: Slot | undefined;
  #isClosing = false;

  constructor(options: CircuitOptions) {
    const { timeoutMs, resetMs, publishLimit } = options;
    this.#options = options;
    this.#breaker = createBreaker({
      timeoutMs,
      resetMs,
      samples: new CallSamples(),
      onChange: (state) => this.#change(state),
    });
    this.#cooldown = createCooldown({ onChange: () => this.#change(), tell: publishLimit });
  }

  get breaker(): Pick<Breaker, 'state' | 'nextProbeMs'> {
    return this.#breaker;
  }

  get cooldown(): Pick<Cooldown, 'leftMs' | 'extend'> {
    return this.#cooldown;
  }

  /** Whether nothing would be lost without it but the memory of good calls. */
  get isIdle(): boolean {
    const isBusy = this.#calling.size > 0 || this.#waiters.size > 0;
    return !isBusy && this.#breaker.state === 'closed' && this.#cooldown.leftMs === 0;
  }

  /** Makes the call as soon as it may begin; throws `NotBegun`, why it may not in time, or whatever it throws. */
  async run<T>(caller: Caller, kind: CallKind, call: (onReply: () => void) => Promise<T>): Promise<T> {
    if (kind.isRetry && this.#breaker.state !== 'closed') throw new Failure('provider_unavailable');
    const { slot } = caller;
    this.#calling.add(slot);
    try {
      do {
        await this.#whenOpen(caller, kind);
        await slot.take();
        // Whoever waited for a slot may find the model closed again.
      } while (this.#closed !== undefined);
      caller.stop.throwIfAborted();
      return await this.#watch(slot, () =>
        this.#breaker.run((onReply) => this.#cooldown.watch(() => call(onReply), kind)),
      );
    } finally {
      this.#calling.delete(slot);
      if (this.#trial === slot) this.#trial = undefined;
      this.#wake();
    }
  }

  /** Gives the jobs that wait back, but for retries: their first calls were made here. */
  close(): void {
    this.#isClosing = true;
    for (const waiter of [...this.#waiters]) if (!waiter.isRetry) waiter.refuse(new NotBegun());
  }

  /** Ends its timers, once no job is left. */
  dispose(): void {
    this.#cooldown.close();
    this.#breaker.close();
  }

  /** Why no call may begin, and for how long, in milliseconds. */
  get #closed(): { code: 'provider_unavailable' | 'provider_rate_limited'; leftMs: number } | undefined {
    if (this.#breaker.state === 'open')
      return { code: 'provider_unavailable', leftMs: this.#breaker.nextProbeMs };
    const { leftMs } = this.#cooldown;
    return leftMs > 0 ? { code: 'provider_rate_limited', leftMs } : undefined;
  }

  #now(): number {
    return this.#options.now?.() ?? Date.now();
  }

  get #isOneAtATime(): boolean {
    return this.#wasHeld || this.#breaker.state === 'half-open';
  }

  /** A trial after a cooldown has shown what it can when it was not limited, or not within a second. */
  async #watch<T>(slot: Slot, call: () => Promise<T>): Promise<T> {
    if (this.#trial !== slot) return call();
    const pass = () => {
      this.#wasHeld = false;
      if (!this.#isOneAtATime) this.#trial = undefined;
      this.#wake();
    };
    const timer = setTimeout(pass, trialMs);
    try {
      const result = await call();
      this.#wasHeld = false;
      return result;
    } catch (error) {
      if (!isLimit(error)) this.#wasHeld = false;
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  async #whenOpen(caller: Caller, kind: CallKind): Promise<void> {
    if (this.#trial === caller.slot) this.#trial = undefined;
    if (this.#waiters.size === 0 && this.#admits(caller.slot)) return;
    if (this.#isClosing && !kind.isRetry) throw new NotBegun();
    this.#throwIfHopeless(caller);
    if (!kind.isRetry && !this.#options.hasRoom()) throw this.#refusal();
    caller.slot.leave();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter: Waiter = { ...caller, ...kind, begin: resolve, refuse: reject };
    const onStop = () => reject(caller.stop.reason);
    const timer = setTimeout(() => reject(new Failure('timeout')), caller.deadline - this.#now());
    this.#waiters.add(waiter);
    caller.stop.addEventListener('abort', onStop);
    if (caller.stop.aborted) onStop();
    try {
      await promise;
    } finally {
      clearTimeout(timer);
      caller.stop.removeEventListener('abort', onStop);
      this.#waiters.delete(waiter);
    }
  }

  /** Whether a call may begin now; one that begins alone is noted down. */
  #admits(slot: Slot): boolean {
    if (this.#closed !== undefined || (this.#isOneAtATime && this.#trial !== undefined)) return false;
    if (this.#isOneAtATime) this.#trial = slot;
    return true;
  }

  #throwIfHopeless({ deadline }: Caller): void {
    const closed = this.#closed;
    if (closed !== undefined && this.#now() + closed.leftMs >= deadline) throw this.#refusal();
  }

  #refusal(): Failure {
    const isLimited = this.#breaker.state === 'closed';
    return new Failure(isLimited ? 'provider_rate_limited' : 'provider_unavailable', {
      retryAfterMs: this.#closed?.leftMs ?? trialMs,
    });
  }

  #change(state?: BreakerState): void {
    if (this.#cooldown.leftMs > 0) this.#wasHeld = true;
    if (state === 'open') this.#giveUp();
    this.#wake();
    this.#options.onChange(state);
  }

  /** Calls under way may hang for long: they keep no slot. Those who wait have waited for the probe that has failed. */
  #giveUp(): void {
    for (const waiter of [...this.#waiters]) waiter.refuse(this.#refusal());
    for (const slot of this.#calling) slot.leave();
  }

  /** Lets those begin who may, and refuses those who cannot in time. */
  #wake(): void {
    for (const waiter of [...this.#waiters]) {
      try {
        this.#throwIfHopeless(waiter);
      } catch (reason) {
        waiter.refuse(reason);
        this.#waiters.delete(waiter);
        continue;
      }
      if (!this.#admits(waiter.slot)) continue;
      this.#waiters.delete(waiter);
      waiter.begin();
    }
  }
}
