import type { LRUCache } from 'lru-cache';
import { Breaker, type BreakerOptions, type BreakerState, type Ending } from './breaker.js';
import type { GatedCall } from './gated-call.js';

/** How a call ended, with its error if it failed. */
export interface CallEnd extends Pick<GatedCall, 'progress'> {
  readonly error?: unknown;
  readonly tookMs: number;
}

/** The failures that count, and for how long they have calls refused. */
export interface Rule extends Omit<BreakerOptions, 'onChange'> {
  /** Whether a user's failures are weighed against all calls of that user, not only those since the first one. */
  readonly weighsAll: boolean;
  readonly kind: 'account' | 'failures' | 'limits';
  /** Reads the end of a call. */
  judge(call: CallEnd): Ending;
  /** The meaning of a probe that gives no sign of life for so long. */
  readonly silence: { afterMs(): number; readonly isBad: boolean };
}

export interface BreakersOptions {
  readonly rule: Rule;
  /** The model; undefined for the account. */
  readonly model: string | undefined;
  /** The breakers of users, of all rules and models of a pool. */
  readonly own: LRUCache<string, OwnBreaker>;
  /** Called with the user of a change that concerns one user alone, and with the pause of an opening. */
  onChange(state: BreakerState, user?: string, pauseMs?: number): void;
}

/** The breaker of one user. */
export interface OwnBreaker {
  readonly of: Breakers;
  readonly user: string;
  readonly breaker: Breaker;
}

type Fired = Pick<GatedCall, 'user' | 'progress'>;

/**
 * The breaker of all users and one of each. A failure counts for the user of its call. It counts for all as well if the
 * one before it was another user's and no call was answered in between, or if no user can have caused it.
 */
export class Breakers {
  /** The breaker of all users. */
  readonly all: Breaker;
  readonly #blame = new Blame();

  constructor(readonly options: BreakersOptions) {
    this.all = this.#create();
  }

  /** Time until a call of this user may begin, in milliseconds: infinite while another one probes. */
  leftMs(user: string | undefined): number {
    return Math.max(this.all.leftMs, this.#find(user)?.leftMs ?? 0);
  }

  /** Whether this user is refused for the rest of a pause, and not only until a probe has ended. */
  isOpenFor(user: string | undefined): boolean {
    return this.all.state === 'open' || this.#find(user)?.state === 'open';
  }

  /** Whether a call of this user that begins now is a probe. */
  isProbedBy(user: string | undefined): boolean {
    return this.all.state === 'half-open' || this.#find(user)?.state === 'half-open';
  }

  /** Makes a call that may begin, and learns from its end; `life` resolves at its first sign of life. */
  fire<T>(call: Fired, life: Promise<void>, make: () => Promise<T>): Promise<T> {
    const own = this.options.rule.weighsAll ? this.#ownOf(call.user) : this.#find(call.user);
    if (!this.isProbedBy(call.user)) return this.#watch(call, own, make);
    const made = make();
    this.#probe(call, own, life, made).catch(() => undefined);
    return made;
  }

  /** Holds calls for at least this long: another worker has met a 429. */
  hold(user: string | undefined, ms: number): void {
    const breaker = this.#ownOf(user) ?? this.all;
    if (breaker.state !== 'open' || breaker.leftMs < ms) breaker.hold(ms, undefined);
  }

  /** Closes them all without a report, and forgets what has been counted. */
  forget(): void {
    this.all.forget();
    for (const [key, { of }] of [...this.options.own]) if (of === this) this.options.own.delete(key);
  }

  /** Fires both breakers around the call; what its end says is judged once. */
  async #watch<T>(
    call: Fired,
    own: Breaker | undefined,
    make: () => Promise<T>,
    judge = this.options.rule.judge,
  ): Promise<T> {
    const startedAt = performance.now();
    let ending: Ending = {};
    let isOfAll = false;
    const end = (error?: unknown) => {
      ending = judge({ progress: call.progress, error, tookMs: performance.now() - startedAt });
      if (ending.isBad === false) this.#blame.answered();
      isOfAll = ending.isBad === true && (ending.isCertain ?? this.#blame.concernsAll(call.user));
      if (ending.isBad && !own) this.#countFirst(call.user, error, ending);
    };
    const watched = async () => {
      const result = await make().catch((error) => {
        end(error);
        throw error;
      });
      end();
      return result;
    };
    const endingOfAll = () => (isOfAll || !ending.isBad ? ending : this.#endingOfOthers(call.user, ending));
    return this.all.fire(() => own?.fire(watched, () => ending) ?? watched(), endingOfAll);
  }

  /** Counts a user's calls from this failure on, unless its call began before the last opening. */
  #countFirst(user: string | undefined, error: unknown, ending: Ending): void {
    const own = this.#ownOf(user);
    const failed = () => Promise.reject(error);
    if (own?.state === 'closed') own.fire(failed, () => ending).catch(() => undefined);
  }

  /** A failure that concerns its user alone: if it was a probe for all, the next one is for another user. */
  #endingOfOthers(user: string | undefined, ending: Ending): Ending {
    if (this.all.state !== 'half-open') return {};
    const known = this.#ownOf(user);
    if (known?.state === 'closed') known.open(ending.pauseMs, ending.reason);
    this.all.probeAgain();
    return {};
  }

  /** Takes an answer, a first sign of life or, where that says something, a silence for the end of a probe. */
  async #probe<T>(
    call: Fired,
    own: Breaker | undefined,
    life: Promise<void>,
    made: Promise<T>,
  ): Promise<void> {
    const { judge, silence } = this.options.rule;
    const silent = Promise.withResolvers<never>();
    const timer = setTimeout(() => silent.reject(new Silence()), silence.afterMs());
    const judgeProbe = (ended: CallEnd): Ending => {
      if (ended.error instanceof Silence) return { isBad: silence.isBad, reason: 'timeout' };
      if (call.progress.isAlive) return { isBad: false };
      const ending = judge(ended);
      return { ...ending, isBad: ending.isBad ?? true };
    };
    const ended = this.#watch(call, own, () => Promise.race([made, life, silent.promise]), judgeProbe);
    try {
      await ended;
    } catch (error) {
      if (!(error instanceof Silence) || !silence.isBad) return;
      // It is answered late: the model works, if no other call has shown more meanwhile.
      const closings = [this.all.closing, own?.closing];
      await made;
      for (const close of closings) close?.();
    } finally {
      clearTimeout(timer);
    }
  }

  #ownOf(user: string | undefined): Breaker | undefined {
    if (user === undefined) return undefined;
    const { own } = this.options;
    const key = this.#keyOf(user);
    const known = own.get(key)?.breaker;
    const breaker = known ?? this.#create(user);
    if (!known) own.set(key, { of: this, user, breaker });
    return breaker;
  }

  #find(user: string | undefined): Breaker | undefined {
    return user === undefined ? undefined : this.options.own.peek(this.#keyOf(user))?.breaker;
  }

  #keyOf(user: string): string {
    return `${this.options.rule.kind} ${user} ${this.options.model ?? ''}`;
  }

  #create(user?: string): Breaker {
    const { rule, onChange } = this.options;
    return new Breaker({
      ...rule,
      onChange: (state, pauseMs) => {
        if (user === undefined && state === 'open') this.#blame.answered();
        onChange(state, user, pauseMs);
      },
    });
  }
}

/** A failure concerns its user, and all users if the one before was another user's with no answer in between. */
class Blame {
  /** Who failed last; undefined after an answer. */
  #last: { readonly user: string } | undefined;

  /** A call was answered. */
  answered(): void {
    this.#last = undefined;
  }

  /** Takes a failure of this user's call. Whether it concerns all, as one without a user always does. */
  concernsAll(user: string | undefined): boolean {
    if (user === undefined) return true;
    const isOthers = this.#last !== undefined && this.#last.user !== user;
    this.#last = { user };
    return isOthers;
  }
}

/** A probe has given no sign of life for as long as one waits for it. */
class Silence extends Error {}
