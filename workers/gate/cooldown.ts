import { Failure } from '../../shared/failures.js';
import type { GatedCall } from './gated-call.js';

interface CooldownOptions {
  /** Called when a cooldown has begun, has become noticeably longer, or has ended. */
  onChange: () => void;
  /** Called with the length of a cooldown, in milliseconds, that a 429 to this pool began or made noticeably longer. */
  publishLimit: (cooldownMs: number) => void;
}

/** The longest cooldown, even for a longer `Retry-After`: quotas are raised, and clocks and headers are wrong. */
const maxMs = 60_000;
const minPauseMs = 250;
const maxPauseMs = 8000;
/** Running calls are refused at about the same time; a cooldown that grows by less than this is not reported again. */
const noticeableMs = 100;

/**
 * The time after a provider's 429 in which no call of the model begins, retries included; running calls go on. It lasts
 * a pause that doubles from 429 to 429 until a call is answered, or what `Retry-After` says when that is longer (some
 * providers say 0, or a past date, with every 429). Concurrent 429s, and a call plus its retry, double it only once.
 */
export class Cooldown {
  readonly #options: CooldownOptions;
  #endsAt = 0;
  #pauseMs = 0;
  /** 429s that have doubled the pause so far. */
  #limitCount = 0;
  #isDisposed = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: CooldownOptions) {
    this.#options = options;
  }

  /** The rest of the cooldown, in milliseconds; 0 when calls may begin. */
  get leftMs(): number {
    return this.#endsAt === 0 ? 0 : Math.max(1, this.#endsAt - performance.now());
  }

  /** Makes a call and returns its result; a 429 begins a cooldown, an answer resets the pause. */
  async watch<T>({ kind }: Pick<GatedCall, 'kind'>, next: () => Promise<T>): Promise<T> {
    const since = this.#limitCount;
    try {
      const result = await next();
      if (since === this.#limitCount) this.#pauseMs = 0;
      return result;
    } catch (error) {
      const doubles = since === this.#limitCount && kind === 'first';
      if (isLimit(error)) this.#recordLimit(error.facts.retryAfterMs, doubles);
      throw error;
    }
  }

  /** Makes it last at least this long from now, in milliseconds: another pool of the provider has met a 429. */
  extend(ms: number): void {
    this.#lengthen(Math.min(ms, maxMs));
  }

  /** Ends its reports, and lets the process end. */
  dispose(): void {
    this.#isDisposed = true;
    this.#timer?.unref();
  }

  #recordLimit(retryAfterMs: number | undefined, doubles: boolean): void {
    if (doubles) {
      this.#limitCount += 1;
      this.#pauseMs = this.#pauseMs === 0 ? minPauseMs : Math.min(2 * this.#pauseMs, maxPauseMs);
    }
    const ms = Math.min(Math.max(retryAfterMs ?? 0, this.#pauseMs, minPauseMs), maxMs);
    if (this.#lengthen(ms)) this.#options.publishLimit(ms);
  }

  /** Whether it began or became noticeably longer. */
  #lengthen(ms: number): boolean {
    const beforeMs = this.leftMs;
    if (this.#isDisposed || ms <= beforeMs) return false;
    this.#endsAt = performance.now() + ms;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#end(), ms);
    const isNoticeable = beforeMs === 0 || ms - beforeMs > noticeableMs;
    if (isNoticeable) this.#options.onChange();
    return isNoticeable;
  }

  #end(): void {
    this.#endsAt = 0;
    if (!this.#isDisposed) this.#options.onChange();
  }
}

/** Whether this is a provider's 429. */
export const isLimit = (error: unknown): error is Failure =>
  error instanceof Failure && error.code === 'provider_rate_limited';
