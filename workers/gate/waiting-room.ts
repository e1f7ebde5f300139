import { Failure } from '../../shared/failures.js';
import { Tally } from '../../shared/runtime/semaphore.js';
import { type Concerns, type GatedCall, NotBegun, userOf } from './gated-call.js';
import type { ImageRoom } from './image-room.js';

interface WaitingRoomOptions {
  /** The slots of the pool. */
  size(): number;
  /** Time until the call may begin, in milliseconds: infinite while a probe decides. */
  leftMs(call: GatedCall): number;
  /** Why a call is not made that has to wait for longer than it may. */
  refusalOf(call: GatedCall): Error;
  imageRoom?: ImageRoom | undefined;
  /** Called when the number of parked jobs has changed. */
  onParked(): void;
}

/** A whole reply that has no more time than this is no long call, in milliseconds. */
const longMs = 10_000;
/** In a smaller pool there is nothing to divide. */
const minDivided = 10;
/** A user may have so many times the places that are left for the others: three quarters, and less beside others. */
const maxTimesLeft = 3;
/** Jobs that may be parked; each has its conversation in memory. */
const maxParked = 500;
/** A job that waits longer than this for a pause is parked, in milliseconds. */
const parkedAfterMs = 500;

/** A job that waits to make a call. */
interface Waiter {
  readonly call: GatedCall;
  readonly enteredAt: number;
  readonly deadlineAt: number;
  /** When it may begin as far as is known, by `performance.now()`; 0 if that has to be asked. */
  freeAt: number;
  /** From when on its patience counts; undefined while nothing but a slot, a share or room is missing. */
  heldAt: number | undefined;
  isParked: boolean;
  begin(): void;
  reject(reason: unknown): void;
}

/** A call that runs. */
interface Running {
  readonly call: GatedCall;
  readonly isLong: boolean;
  /** False once it hangs at a breaker that has opened. */
  hasSlot: boolean;
}

/**
 * The one list in which the jobs of a pool wait, most urgent first, then oldest. A job begins when its pauses are over,
 * a slot is free, its user has a share of the slots left, and its images have room. It has a slot during its call.
 *
 * Another job is taken in the place of one that is parked: it waits for a probe, a longer pause, a share, or for room.
 * Of 100 slots one user gets 75 for calls that may take long, the next 18, and each who has none the next one.
 */
export class WaitingRoom {
  readonly #options: WaitingRoomOptions;
  readonly #waiting: Waiter[] = [];
  readonly #running = new Set<Running>();
  /** The running long calls that have slots, and the parked jobs, by user. */
  readonly #long = new Tally();
  readonly #parked = new Tally();
  #slots = 0;
  /** The number of parked jobs at the last `onParked`. */
  #told = 0;
  #timer: NodeJS.Timeout | undefined;
  #isDue = false;
  #isClosing = false;

  constructor(options: WaitingRoomOptions) {
    this.#options = options;
    options.imageRoom?.onRelease(() => this.#lookSoon());
  }

  /** Jobs that are here without wanting a slot. */
  get parked(): number {
    return this.#parked.total + this.#running.size - this.#slots;
  }

  /**
   * Begins the call once it may, with what to call at its first sign of life, and returns its result. Throws `NotBegun`
   * if its job goes back to the queue, why it cannot begin in time, or the reason of its signal.
   */
  async enter<T>(call: GatedCall, begin: (onLife: () => void) => Promise<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    let onEnd = () => {};
    const waiter = this.#admit(call, {
      begin: () => {
        const running = this.#run(call);
        const leaveRoom = this.#options.imageRoom?.add(call) ?? (() => {});
        onEnd = () => {
          this.#leaveSlot(running);
          this.#running.delete(running);
          leaveRoom();
        };
        begin(leaveRoom).then(resolve, reject);
      },
      reject,
    });
    const onStop = () => this.#reject(waiter, call.stop.reason);
    call.stop.addEventListener('abort', onStop);
    if (call.stop.aborted) onStop();
    this.#lookSoon();
    try {
      return await promise;
    } finally {
      call.stop.removeEventListener('abort', onStop);
      onEnd();
      this.#lookSoon();
    }
  }

  /** To be called when a breaker, a limit or the number of slots has changed. */
  wake(): void {
    for (const waiter of this.#waiting) waiter.freeAt = 0;
    this.#lookSoon();
  }

  /** Gives the slots of calls that hang at a breaker, without a sign of life, to others: else nothing could probe. */
  leaveSlots(of: Concerns): void {
    for (const running of this.#running)
      if (concerns(of, running.call) && !running.call.progress.isAlive) this.#leaveSlot(running);
    this.#lookSoon();
  }

  /** Ends the waits for a breaker that has opened; a retry waits for none, and no call for the account's. */
  refuse(of: Concerns): void {
    for (const waiter of [...this.#waiting]) {
      const { call, freeAt } = waiter;
      const waits = freeAt > performance.now() || call.kind === 'retry' || of.model === undefined;
      if (waits && concerns(of, call)) this.#reject(waiter, this.#options.refusalOf(call));
    }
  }

  /** Sends waiting jobs back to their queue, but for retries: their first calls were made here. */
  close(): void {
    this.#isClosing = true;
    this.#lookSoon();
  }

  dispose(): void {
    clearTimeout(this.#timer);
  }

  #admit(call: GatedCall, then: Pick<Waiter, 'begin' | 'reject'>): Waiter {
    const enteredAt = performance.now();
    const deadlineAt = enteredAt + call.leftMs();
    const heldAt = call.kind === 'retry' ? enteredAt : undefined;
    const waiter = { ...then, call, enteredAt, deadlineAt, heldAt, freeAt: 0, isParked: false };
    const before = this.#waiting.findLastIndex((other) => !isMoreUrgent(call, other.call));
    this.#waiting.splice(before + 1, 0, waiter);
    return waiter;
  }

  /** Once for all changes of the moment, in a microtask. */
  #lookSoon(): void {
    if (!this.#isDue) queueMicrotask(() => this.#look());
    this.#isDue = true;
  }

  /** Begins all calls that may begin, in order, and ends the waits that are too long. */
  #look(): void {
    this.#isDue = false;
    const now = performance.now();
    const nextAt = Math.min(...[...this.#waiting].map((waiter) => this.#lookAt(waiter, now)));
    clearTimeout(this.#timer);
    const leftMs = Math.max(1, Math.ceil(nextAt - now));
    if (leftMs < Number.POSITIVE_INFINITY) this.#timer = setTimeout(() => this.#lookSoon(), leftMs);
    const { parked } = this;
    if (parked === this.#told) return;
    this.#told = parked;
    this.#options.onParked();
  }

  /** Begins the call, ends its wait, or says when it has to be looked at again, by `performance.now()`. */
  #lookAt(waiter: Waiter, now: number): number {
    const { call, enteredAt, deadlineAt } = waiter;
    const { leftMs, imageRoom, size } = this.#options;
    const hasShare =
      size() < minDivided || !isLong(call, deadlineAt - now) || hasPlace(this.#long, size(), call);
    const hasSlot = hasShare && this.#slots < size();
    // Breakers are asked once after each change, and once more before the call begins.
    const isAsked = waiter.freeAt > now && waiter.freeAt < Number.POSITIVE_INFINITY;
    if (waiter.freeAt === 0 || (hasSlot && !isAsked))
      waiter.freeAt = Math.max(now + leftMs(call), enteredAt + call.pauseMs);
    const isHeld = waiter.freeAt > now;
    const mayBegin = hasSlot && !isHeld && now < deadlineAt;
    if (mayBegin && (imageRoom?.fits(call) ?? true)) return this.#begin(waiter);
    return this.#keep(waiter, now, isHeld ? waiter.freeAt - now > parkedAfterMs : mayBegin || !hasShare);
  }

  /** Lets a call that may not begin wait on, or ends its wait. Returns when to look at it again. */
  #keep(waiter: Waiter, now: number, isToPark: boolean): number {
    const { call, deadlineAt, freeAt } = waiter;
    const isHeld = freeAt > now;
    if (call.kind !== 'retry') waiter.heldAt = isHeld ? (waiter.heldAt ?? now) : undefined;
    const patientUntil = waiter.heldAt === undefined ? deadlineAt : waiter.heldAt + call.patienceMs;
    const waitsUntil = Math.min(patientUntil, deadlineAt);
    const goesBack = call.kind === 'first' && this.#mayNotWait(waiter, isHeld, isToPark);
    if (goesBack) return this.#reject(waiter, goesBack);
    if (now >= deadlineAt) return this.#reject(waiter, new Failure('timeout'));
    // A wait that would be too long is refused at once; a probe may take any time.
    const isTooLate = now >= waitsUntil || (freeAt >= waitsUntil && freeAt < Number.POSITIVE_INFINITY);
    if (isTooLate) return this.#reject(waiter, this.#options.refusalOf(call));
    this.#park(waiter, isToPark);
    return isHeld ? Math.min(waitsUntil, freeAt) : waitsUntil;
  }

  /** Why a first call does not wait here; undefined if it may. */
  #mayNotWait({ call, isParked }: Waiter, isHeld: boolean, isToPark: boolean): Error | undefined {
    // Once it waits for a slot alone, the queue knows better which job is to have the next one.
    if (this.#isClosing || (isParked && !isToPark && !isHeld)) return new NotBegun();
    if (isParked || !isToPark || hasPlace(this.#parked, maxParked, call)) return undefined;
    return isHeld ? this.#options.refusalOf(call) : new NotBegun(true);
  }

  #begin(waiter: Waiter): number {
    if (this.#leave(waiter)) waiter.begin();
    return Number.POSITIVE_INFINITY;
  }

  #reject(waiter: Waiter, reason: unknown): number {
    if (this.#leave(waiter)) waiter.reject(reason);
    return Number.POSITIVE_INFINITY;
  }

  /** False if it waits no longer. */
  #leave(waiter: Waiter): boolean {
    const at = this.#waiting.indexOf(waiter);
    if (at < 0) return false;
    this.#waiting.splice(at, 1);
    this.#park(waiter, false);
    return true;
  }

  #park(waiter: Waiter, isParked: boolean): void {
    if (waiter.isParked === isParked) return;
    waiter.isParked = isParked;
    this.#parked.add(userOf(waiter.call), isParked ? 1 : -1);
  }

  #run(call: GatedCall): Running {
    const running = { call, isLong: isLong(call, call.leftMs()), hasSlot: true };
    this.#running.add(running);
    this.#slots += 1;
    if (running.isLong) this.#long.add(userOf(call), 1);
    return running;
  }

  #leaveSlot(running: Running): void {
    if (!running.hasSlot) return;
    running.hasSlot = false;
    this.#slots -= 1;
    if (running.isLong) this.#long.add(userOf(running.call), -1);
  }
}

/** Whether one more of so many places is this user's: the first in any case, then three times those left for others. */
function hasPlace(taken: Tally, size: number, call: GatedCall): boolean {
  const own = taken.of(userOf(call));
  return own === 0 || own < maxTimesLeft * (size - taken.total - 1);
}

/** Whether the call may take long, however long its model usually takes. */
const isLong = ({ isRead }: GatedCall, leftMs: number): boolean => isRead || leftMs > longMs;

const concerns = ({ model, user }: Concerns, call: GatedCall): boolean =>
  (model === undefined || model === call.model) && (user === undefined || user === call.user);

const isMoreUrgent = (one: GatedCall, other: GatedCall): boolean =>
  one.priority === other.priority ? one.addedAt < other.addedAt : one.priority < other.priority;
