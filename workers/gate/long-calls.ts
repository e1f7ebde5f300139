import { Failure } from '../../shared/failures.js';
import { NotBegun } from './ends.js';
import type { GatedCall } from './gated-call.js';
import { type Waiter, WaitingJobs } from './waiting-jobs.js';

/** Calls of a model that usually take longer than this may fill a pool for as long, in milliseconds. */
const longMs = 10_000;
/** In a smaller pool there is nothing to divide. */
const minSlots = 10;
/** A user may have so many times the slots that are left for the others. */
const maxTimesLeft = 3;

interface LongCallsOptions {
  /** The slots of the pool. */
  concurrency: () => number;
  /** Whether one more job of this user may be here without a slot. */
  hasRoom: (user: string | undefined) => boolean;
}

/**
 * Divides the slots of a pool among the users whose calls take long. Of 100 slots one user gets 75, the next 18, and
 * each who has none the next one, so that the calls of one user cannot keep all others waiting for minutes.
 */
export class LongCalls {
  readonly #running = new Set<GatedCall>();
  /** Those that count while they are parked, too. */
  readonly #returning = new WeakSet<GatedCall>();
  readonly #waiting = new WaitingJobs();
  #isClosing = false;

  constructor(private readonly options: LongCallsOptions) {}

  /**
   * Lets a call in that has its slot, or returns false if its user has to wait. It counts until it leaves, unless its
   * model is fast: `usualMs` is how long that usually takes to answer, in milliseconds; absent before its first answer.
   */
  enter(call: GatedCall, usualMs = Number.POSITIVE_INFINITY): boolean {
    if (usualMs > longMs && !this.#mayEnter(call)) return false;
    if (usualMs > longMs) this.#running.add(call);
    this.#wake();
    return true;
  }

  /** Gives away the slot of a call that has entered, and will take one again without asking. */
  park(call: GatedCall): void {
    this.#returning.add(call);
    call.slot.park();
  }

  /** Waits without a slot until the call may enter. Throws `NotBegun` without room for one more job, or on closing. */
  async wait(call: GatedCall): Promise<void> {
    const isFirst = call.kind === 'first';
    if (isFirst && (this.#isClosing || !this.options.hasRoom(call.user)))
      throw new NotBegun(!this.#isClosing);
    call.slot.park();
    await this.#waiting.wait(call, call.leftMs(), () => new Failure('timeout'));
  }

  /** To be called when any call has ended, and when one waits for its model: the next one need not wait for it. */
  leave(call: GatedCall): void {
    this.#running.delete(call);
    this.#wake();
  }

  close(): void {
    this.#isClosing = true;
    this.#waiting.sendBack();
  }

  #mayEnter({ user }: GatedCall): boolean {
    const size = this.options.concurrency();
    // A call that hangs at an open breaker has no slot.
    const running = [...this.#running].filter((call) => !call.slot.isParked || this.#returning.has(call));
    const own = running.filter((other) => other.user === user).length;
    return size < minSlots || own === 0 || own < maxTimesLeft * (size - running.length - 1);
  }

  /** One at a time: each that enters wakes the next. */
  #wake(): void {
    const refused = new Set<string | undefined>();
    const isNext = ({ call }: Waiter) =>
      !refused.has(call.user) && (this.#mayEnter(call) || !refused.add(call.user));
    this.#waiting.all.find(isNext)?.begin();
  }
}
