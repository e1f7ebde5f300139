import { Failure } from '../../shared/failures.js';

/**
 * The time in which no call of a model begins, because its provider has answered with a 429: it is asked too often,
 * which concerns every job of the model alike. Calls that run already go on; a retry waits as well.
 */
export interface Cooldown {
  /** What is left of it, in milliseconds; 0 while nothing is held back. */
  readonly leftMs: number;
  /** Makes a call and gives what it gives; a 429 holds the model back, an answer ends the row of them. */
  watch<T>(call: () => Promise<T>, kind?: { isRetry: boolean }): Promise<T>;
  /** Holds back this long, in milliseconds, because another pool of the provider was told to wait. */
  extend(ms: number): void;
  /** Tells nobody of anything any more, and does not keep the process alive. */
  close(): void;
}

interface CooldownOptions {
  /** Called when a cooldown has begun, has become noticeably longer, or has ended. */
  onChange: () => void;
  /** Called with the length of a cooldown, in milliseconds, that a 429 to this pool began or made noticeably longer. */
  tell: (holdMs: number) => void;
}

/** A provider that asks for more is asked again after this long: quotas are raised, and clocks and headers are wrong. */
const maxMs = 60_000;
const minPauseMs = 250;
const maxPauseMs = 8000;
/** All calls that run are refused at about the same time; a cooldown that only grows by this much is no news. */
const noticeableMs = 100;

/**
 * How long: a pause that doubles from 429 to 429 until a call is answered, or what `Retry-After` says when that is longer
 * (some say 0, or give a date that has passed, with every 429). A call that
 * began before the last 429 came says nothing of what came after it: twenty that are refused at once are one sign, and
 * so are a call and its retry.
 */
export function createCooldown({ onChange, tell }: CooldownOptions): Cooldown {
  let endsAt = 0;
  let pauseMs = 0;
  /** How many 429s have counted so far. */
  let limits = 0;
  let isClosed = false;
  let timer: NodeJS.Timeout | undefined;

  const leftMs = () => (endsAt === 0 ? 0 : Math.max(1, endsAt - performance.now()));
  const end = () => {
    endsAt = 0;
    if (!isClosed) onChange();
  };
  /** Whether a cooldown began or became noticeably longer. */
  const lengthen = (ms: number): boolean => {
    const beforeMs = leftMs();
    if (isClosed || ms <= beforeMs) return false;
    endsAt = performance.now() + ms;
    clearTimeout(timer);
    timer = setTimeout(end, ms);
    const isNews = beforeMs === 0 || ms - beforeMs > noticeableMs;
    if (isNews) onChange();
    return isNews;
  };
  const recordLimit = (retryAfterMs: number | undefined, isNewSign: boolean) => {
    if (isNewSign) {
      limits += 1;
      pauseMs = pauseMs === 0 ? minPauseMs : Math.min(2 * pauseMs, maxPauseMs);
    }
    const ms = Math.min(Math.max(retryAfterMs ?? 0, pauseMs, minPauseMs), maxMs);
    if (lengthen(ms)) tell(ms);
  };

  return {
    get leftMs() {
      return leftMs();
    },
    watch: async (call, { isRetry } = { isRetry: false }) => {
      const since = limits;
      try {
        const result = await call();
        if (since === limits) pauseMs = 0;
        return result;
      } catch (error) {
        if (isLimit(error)) recordLimit(error.facts.retryAfterMs, since === limits && !isRetry);
        throw error;
      }
    },
    extend: (ms) => void lengthen(Math.min(ms, maxMs)),
    close: () => {
      isClosed = true;
      timer?.unref();
    },
  };
}

/** Whether this is a provider's 429. */
export const isLimit = (error: unknown): error is Failure =>
  error instanceof Failure && error.code === 'provider_rate_limited';
