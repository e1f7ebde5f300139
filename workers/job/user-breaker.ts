import type { Breaker, BreakerState } from './breaker.js';

/** What is told of a breaker, and of the user whom alone it refuses. */
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
  /** Id of the user who asked; absent in jobs of the release before. */
  readonly user?: string | undefined;
  readonly weight: number;
  /** Whether it was the probe of this user, and the provider had its full time. */
  readonly isFailedProbe: boolean;
}

/** Five calls of the usual weight, or ten that show less. */
const maxWeight = 10;

/**
 * A breaker for the one user to whom a model has not answered in time while it has answered nobody else. What this user
 * asks may be too long, or the user too impatient: others are not kept from the model, and the first answer to anyone
 * closes the breaker. Until then it refuses the user's calls, and lets one at a time through after each pause.
 */
export class UserBreaker {
  readonly #options: UserBreakerOptions;
  #state: BreakerState = 'closed';
  /** Whose calls are counted, or refused. */
  #user: string | undefined;
  /** Who had the last call without an answer. */
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

  /** Whom it refuses; undefined while it is closed. */
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

  /** Counts the call; gives whether others had none either, so that it shows something of the provider. */
  record({ user, weight, isFailedProbe }: UnansweredCall): boolean {
    if (user === undefined) return true;
    const isOfSeveral = this.#lastUser !== undefined && this.#lastUser !== user;
    this.#lastUser = user;
    if (this.#isHeldClosed) return isOfSeveral;
    if (this.#state !== 'closed') {
      if (isFailedProbe && user === this.#user) this.#open(user);
      return isOfSeveral;
    }
    this.#weight = weight + (user === this.#user ? this.#weight : 0);
    this.#user = user;
    if (this.#weight >= maxWeight) this.#open(user);
    return isOfSeveral;
  }

  /** To be called when the model has answered anyone. */
  close(): void {
    const { user } = this;
    this.dispose();
    if (user !== undefined) this.#options.onChange('closed', user);
  }

  /** Keeps it closed until this is called with false. */
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
