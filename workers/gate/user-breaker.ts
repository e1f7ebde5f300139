import type { Breaker, BreakerState } from './breaker.js';

/** The public facts of a breaker; `user` is the only user that it refuses. */
export interface DescribedBreaker extends Pick<Breaker, 'state' | 'nextProbeMs' | 'reason'> {
  readonly user?: string | undefined;
}

interface UserBreakerOptions {
  /** Pause between opening and the probe, in milliseconds. */
  resetMs: () => number;
  onChange: (state: BreakerState, user: string) => void;
}

/** A call of a model that got no answer in time. */
export interface UnansweredCall {
  /** Id of the user who asked. */
  readonly user?: string | undefined;
  readonly weight: number;
  /** Whether it was the probe of this user, and the provider had its full time. */
  readonly isFailedProbe: boolean;
}

/** Five calls of the usual weight, or ten that show less. */
const maxWeight = 10;

/**
 * A breaker for a single user whose calls of a model get no answer in time while no other call is answered either: the
 * user may ask too much. The first answer to any user closes it; until then one call passes after each pause.
 */
export class UserBreaker {
  readonly #options: UserBreakerOptions;
  #state: BreakerState = 'closed';
  #user: string | undefined;
  #lastUser: string | undefined;
  #weight = 0;
  #nextProbeAt = 0;
  #timer: NodeJS.Timeout | undefined;
  #isHeldClosed = false;

  constructor(options: UserBreakerOptions) {
    this.#options = options;
  }

  get state(): BreakerState {
    return this.#state;
  }

  /** The user that it refuses; undefined while it is closed. */
  get user(): string | undefined {
    return this.#state === 'closed' ? undefined : this.#user;
  }

  get reason(): string | undefined {
    return this.#state === 'closed' ? undefined : 'timeout';
  }

  /** Time until it is half-open, in milliseconds; 0 unless it is open. */
  get nextProbeMs(): number {
    return this.#state === 'open' ? Math.max(1, this.#nextProbeAt - performance.now()) : 0;
  }

  stateFor(user: string | undefined): BreakerState {
    return user === this.#user ? this.#state : 'closed';
  }

  /** Counts the call. True if the unanswered call before was another user's: then it says something about the model. */
  record({ user, weight, isFailedProbe }: UnansweredCall): boolean {
    if (user === undefined) return true;
    const isOfSeveral = [this.user, this.#lastUser].some((other) => other !== undefined && other !== user);
    this.#lastUser = user;
    if (this.#state === 'closed' && !this.#isHeldClosed) {
      this.#weight = weight + (user === this.#user ? this.#weight : 0);
      this.#user = user;
      if (this.#weight >= maxWeight) this.#open(user);
    } else if (isFailedProbe && user === this.user) this.#open(user);
    return isOfSeveral;
  }

  /** Call it when the model has answered any user. */
  close(): void {
    const { user } = this;
    this.dispose();
    if (user !== undefined) this.#options.onChange('closed', user);
  }

  holdClosed(isHeld: boolean): void {
    this.#isHeldClosed = isHeld;
    if (isHeld) this.close();
  }

  /** Ends its timer, and forgets what it has counted. */
  dispose(): void {
    clearTimeout(this.#timer);
    this.#state = 'closed';
    this.#user = undefined;
    this.#lastUser = undefined;
    this.#weight = 0;
  }

  #open(user: string): void {
    const resetMs = this.#options.resetMs();
    this.#nextProbeAt = performance.now() + resetMs;
    this.#timer = setTimeout(() => this.#become('half-open', user), resetMs);
    this.#become('open', user);
  }

  #become(state: BreakerState, user: string): void {
    this.#state = state;
    this.#options.onChange(state, user);
  }
}
