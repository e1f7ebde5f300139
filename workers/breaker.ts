import CircuitBreaker from 'opossum';
import { Failure } from '../shared/failures.js';

/** `closed` lets every call through, `open` none, `half-open` one at a time to find out. */
export type BreakerState = 'closed' | 'open' | 'half-open';

export interface Breaker {
  readonly state: BreakerState;
  /** Runs the call unless the breaker is open; throws `provider_unavailable` then, and whatever the call throws. */
  run<T>(call: () => Promise<T>): Promise<T>;
  close(): void;
}

interface BreakerOptions {
  /** Longest call there can be, in milliseconds; hanging calls must fit twice into the window that is judged. */
  timeoutMs: number;
  /** Pause between opening and the probe, in milliseconds. */
  resetMs: number;
  onChange: (state: BreakerState) => void;
}

/** Below this many verdicts in the window the breaker stays closed. */
const volumeThreshold = 5;
const errorThresholdPercentage = 50;
/** At 0.3 requests/s five verdicts take 17 s. */
const shortestWindowMs = 30_000;

/**
 * A circuit breaker that judges only what says something about the provider's health: opossum is told each verdict
 * after the call instead of wrapping it, because whatever it wraps counts as either failure or success. Refused
 * requests, our own cancels, rate limits and unusable answers are neither, and must not close a half-open breaker.
 * Calls end by their own signals, so opossum's timeout is off; nothing it wraps can hang.
 */
export function createBreaker({ timeoutMs, resetMs, onChange }: BreakerOptions): Breaker {
  const windowMs = Math.max(2 * timeoutMs, shortestWindowMs);
  const judgeAnew = (): Judge =>
    createJudge({ windowMs, resetMs })
      .on('open', () => onChange('open'))
      .on('halfOpen', () => onChange('half-open'))
      .on('close', () => {
        // The failures that opened it are over; without a fresh window the next single one would open it again.
        judge.shutdown();
        judge = judgeAnew();
        onChange('closed');
      });
  let judge = judgeAnew();
  let probing = false;
  const state = (): BreakerState => (judge.opened ? 'open' : judge.halfOpen ? 'half-open' : 'closed');
  // A call that began before the breaker opened must not be taken for the probe when it ends late.
  const tell = (verdict: Verdict, probe: boolean) => {
    if (probe || judge.closed) void judge.fire(verdict).catch(() => undefined);
  };
  return {
    get state() {
      return state();
    },
    close: () => judge.shutdown(),
    run: async (call) => {
      const probe = state() === 'half-open';
      if (state() === 'open' || (probe && probing)) throw new Failure('provider_unavailable');
      if (probe) probing = true;
      try {
        const result = await call();
        tell(healthy, probe);
        return result;
      } catch (error) {
        if (showsSickness(error)) tell(sick, probe);
        throw error;
      } finally {
        if (probe) probing = false;
      }
    },
  };
}

type Judge = CircuitBreaker<[Verdict], void>;

const createJudge = ({ windowMs, resetMs }: { windowMs: number; resetMs: number }): Judge =>
  new CircuitBreaker((verdict: Verdict) => verdict(), {
    timeout: false,
    resetTimeout: resetMs,
    rollingCountTimeout: windowMs,
    rollingCountBuckets: 20,
    rollingPercentilesEnabled: false,
    enableSnapshots: false,
    volumeThreshold,
    errorThresholdPercentage,
  });

type Verdict = () => Promise<void>;
const healthy: Verdict = () => Promise.resolve();
const sick: Verdict = () => Promise.reject(new Error('sick'));

const showsSickness = (error: unknown): boolean =>
  error instanceof Failure &&
  (error.code === 'provider_timeout' || (error.code === 'provider_error' && error.retryable));
