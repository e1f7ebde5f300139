import { Failure } from '../../shared/failures.js';
import type { GatedCall } from './gated-call.js';

/** How long a 429 holds calls of a model. */
export interface Limit {
  /** In milliseconds, from now on. */
  readonly holdMs: number;
  /** Id of the only user that it holds; undefined if it holds all. */
  readonly user?: string | undefined;
}

interface CooldownOptions {
  /** Called when calls are held, for all or one user, when that has become noticeably longer, or has ended. */
  onChange: () => void;
  /** Called when a 429 to this pool began it or made it noticeably longer. */
  publishLimit: (limit: Limit) => void;
}

/** The longest cooldown, even for a longer `Retry-After`: quotas are raised, and clocks and headers are wrong. */
const maxMs = 60_000;
/** The longest one when the quota of a day is spent. */
const maxOfDayMs = 300_000;
const minPauseMs = 250;
const maxPauseMs = 8000;
/** Running calls are refused at about the same time; a cooldown that grows by less than this is not reported again. */
const noticeableMs = 100;

/**
 * The time after a provider's 429 in which no call of the model begins, retries included; running calls go on. It lasts
 * a pause that doubles from 429 to 429 until a call is answered, or what `Retry-After` says when that is longer (some
 * providers say 0, or a past date, with every 429). Concurrent 429s, and a call plus its retry, double it only once.
 *
 * As long as only one user was limited since the last answer, it holds that user alone, and the others once for the
 * shortest pause: then their calls show whose the limit is. An answer frees that user, another user's 429 holds all.
 * When that hold ends, the next 429 is again one user's until another user's follows: else one user could renew it.
 */
export class Cooldown {
  readonly #all = new Hold();
  /** Holds `#user` alone. */
  readonly #one = new Hold();
  /** The first user who was limited since the last answer, or since all were held. */
  #user: string | undefined;
  /** Whether another user was limited since then, or a job without a user. */
  #isOfAll = false;
  #pauseMs = 0;
  /** The pause of all users, which goes on doubling from one hold of all to the next. */
  #pauseOfAllMs = 0;
  /** 429s that have doubled the pause so far. */
  #limitCount = 0;
  #isDisposed = false;

  constructor(private readonly options: CooldownOptions) {}

  /** The rest of this user's cooldown, in milliseconds; 0 when the user's calls may begin. */
  leftMs(user: string | undefined): number {
    return Math.max(this.#all.leftMs, user === this.#user ? this.#one.leftMs : 0);
  }

  /** The rest of the cooldown of the user who is held the longest, in milliseconds. */
  get maxLeftMs(): number {
    return this.leftMs(this.#user);
  }

  /** Whether this user is held for longer than the others. */
  isAlone(user: string | undefined): boolean {
    return user !== undefined && user === this.#user && this.#one.endsAt > this.#all.endsAt;
  }

  /** The user who is held for longer than the others; undefined if none is. */
  get aloneUser(): string | undefined {
    return this.isAlone(this.#user) ? this.#user : undefined;
  }

  /** Whether another user alone was limited since the last answer, so that this user's calls wait for a moment only. */
  isOfOther(user: string | undefined): boolean {
    return this.#user !== undefined && user !== this.#user && !this.#isOfAll;
  }

  /** The holds that have not ended: of all users, then of the one user who is held for longer. */
  describe(): Limit[] {
    const users = this.isAlone(this.#user) ? [undefined, this.#user] : [undefined];
    return users.map((user) => ({ user, holdMs: this.leftMs(user) })).filter(({ holdMs }) => holdMs > 0);
  }

  /** Makes a call and returns its result; a 429 begins a cooldown, an answer resets the pause. */
  async watch<T>({ kind, user }: Pick<GatedCall, 'kind' | 'user'>, next: () => Promise<T>): Promise<T> {
    const since = this.#limitCount;
    const { endsAt } = this.#one;
    try {
      const result = await next();
      if (since === this.#limitCount) this.#recordAnswer(endsAt);
      return result;
    } catch (error) {
      const doubles = since === this.#limitCount && kind === 'first';
      if (isLimit(error)) this.#recordLimit(user, error, doubles);
      throw error;
    }
  }

  /** Makes it last at least this long: another pool of the provider has met a 429. */
  extend({ holdMs, user }: Limit): void {
    this.#hold(user, Math.min(holdMs, maxOfDayMs));
  }

  /** Ends it for good, without a report. */
  dispose(): void {
    this.#isDisposed = true;
    this.#all.end();
    this.#one.end();
  }

  /** Takes an answer; it frees the user who is held unless that hold has begun or grown since the call began. */
  #recordAnswer(endsAt: number): void {
    this.#pauseMs = 0;
    this.#pauseOfAllMs = 0;
    if (endsAt !== this.#one.endsAt) return;
    this.#user = undefined;
    this.#isOfAll = false;
    if (endsAt === 0) return;
    this.#one.end();
    this.options.onChange();
  }

  #recordLimit(user: string | undefined, { facts, retryable }: Failure, doubles: boolean): void {
    // The pauses of one user must not make those of all longer.
    if (!this.#isOfAll && user !== this.#user) this.#pauseMs = this.#pauseOfAllMs;
    if (doubles) {
      this.#limitCount += 1;
      this.#pauseMs = this.#pauseMs === 0 ? minPauseMs : Math.min(2 * this.#pauseMs, maxPauseMs);
    }
    const askedMs = Math.min(facts.retryAfterMs ?? 0, retryable ? maxMs : maxOfDayMs);
    const holdMs = Math.max(askedMs, this.#pauseMs, minPauseMs);
    const isNoticeable = this.#hold(user, holdMs);
    const isOfAll = this.#holdsAll(user);
    if (isOfAll) this.#pauseOfAllMs = this.#pauseMs;
    if (isNoticeable) this.options.publishLimit({ holdMs, user: isOfAll ? undefined : user });
  }

  /** Whether a cooldown began or became noticeably longer. */
  #hold(user: string | undefined, ms: number): boolean {
    if (this.#isDisposed) return false;
    const isFirst = this.#user === undefined && user !== undefined;
    if (isFirst) this.#user = user;
    else if (user === undefined || user !== this.#user) this.#isOfAll = true;
    const { onChange } = this.options;
    const onEndOfAll = () => this.#endOfAll();
    const isNoticeable = this.#holdsAll(user)
      ? this.#all.lengthen(ms, onEndOfAll)
      : this.#one.lengthen(ms, onChange);
    if (isFirst) this.#all.lengthen(minPauseMs, onEndOfAll);
    if (isNoticeable) onChange();
    return isNoticeable;
  }

  /** Whether a 429 of this user holds all: one of the first user never does. */
  #holdsAll(user: string | undefined): boolean {
    return this.#isOfAll && (user === undefined || user !== this.#user);
  }

  #endOfAll(): void {
    if (this.#isOfAll && this.#one.leftMs === 0) this.#user = undefined;
    this.#isOfAll = false;
    this.options.onChange();
  }
}

/** A time in which calls are held. */
class Hold {
  /** By `performance.now()`; 0 while it holds none. */
  endsAt = 0;
  #timer: NodeJS.Timeout | undefined;

  get leftMs(): number {
    return this.endsAt === 0 ? 0 : Math.max(1, this.endsAt - performance.now());
  }

  /** Has it last at least this long from now. Whether it began or became noticeably longer. */
  lengthen(ms: number, onEnd: () => void): boolean {
    const beforeMs = this.leftMs;
    if (ms <= beforeMs) return false;
    this.endsAt = performance.now() + ms;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.endsAt = 0;
      onEnd();
    }, ms);
    return beforeMs === 0 || ms - beforeMs > noticeableMs;
  }

  end(): void {
    clearTimeout(this.#timer);
    this.endsAt = 0;
  }
}

/** Whether this is a provider's 429. */
export const isLimit = (error: unknown): error is Failure =>
  error instanceof Failure && error.code === 'provider_rate_limited';
