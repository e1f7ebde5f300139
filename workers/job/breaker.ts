import CircuitBreaker from 'opossum';
import { Failure } from '../../shared/failures.js';
import type { EndedCall, Sample } from './call-samples.js';

/** `closed` lets every call through, `open` none, `half-open` one at a time to find out. */
export type BreakerState = 'closed' | 'open' | 'half-open';

export interface Breaker {
  readonly state: BreakerState;
  /** Whether it is half-open and its one call is under way. */
  readonly isProbing: boolean;
  /** Time until it is half-open, in milliseconds; 0 unless it is open. */
  readonly nextProbeMs: number;
  /**
   * Runs the call unless the breaker is open; throws `provider_unavailable` then, and whatever the call throws. The call
   * says when its reply begins.
   */
  run<T>(call: (onReply: () => void) => Promise<T>): Promise<T>;
  close(): void;
}

interface BreakerOptions {
  /** Longest call there can be, in milliseconds; hanging calls must fit twice into the window that is judged. */
  timeoutMs: number;
  /** Pause between opening and the probe, in milliseconds. */
  resetMs: number;
  /** Says what a call shows of the health of whatever this breaker is for. */
  samples: { take(call: EndedCall): Sample | undefined };
  onChange: (state: BreakerState) => void;
}

/** Below this many samples in the window the breaker stays closed. */
const volumeThreshold = 5;
const errorThresholdPercentage = 50;
/** At 0.3 requests/s five samples take 17 s. */
const minWindowMs = 30_000;
/** Good calls that are remembered while there is no bad one. */
const maxGood = 100;
/** What fails fast gives many samples in this time; in the long window good ones of a minute ago would outweigh them. */
const shortWindowMs = 10_000;

/**
 * A circuit breaker that judges only what says something about the provider's health: opossum is told each sample
 * after the call instead of wrapping it, because whatever it wraps counts as either failure or success.
 * Calls end by their own signals, so opossum's timeout is off; nothing it wraps can hang.
 */
export function createBreaker({ timeoutMs, resetMs, samples, onChange }: BreakerOptions): Breaker {
  /** From the first bad sample on: most models never have one. `recent` only counts; its state is not asked. */
  let windows: { circuit: Circuit; recent: Circuit } | undefined;
  let isProbing = false;
  let openUntil = 0;
  const good = { count: 0, lastAt: 0 };

  const close = () => {
    windows?.circuit.shutdown();
    windows?.recent.shutdown();
    windows = undefined;
  };
  const open = () => {
    const windowMs = Math.max(2 * timeoutMs, minWindowMs);
    const circuit = createCircuit({ windowMs, resetMs })
      .on('open', () => {
        openUntil = performance.now() + resetMs;
        onChange('open');
      })
      .on('halfOpen', () => onChange('half-open'))
      .on('close', () => {
        // The failures that opened it are over; without fresh windows the next single one would open it again.
        close();
        onChange('closed');
      });
    const recent = createCircuit({ windowMs: shortWindowMs, resetMs }).on('open', () => circuit.open());
    // A few failures at once do not outweigh the good calls of a moment ago.
    const ageMs = performance.now() - good.lastAt;
    for (let n = 0; n < good.count; n += 1) {
      if (ageMs < windowMs) void circuit.fire('good');
      if (ageMs < shortWindowMs) void recent.fire('good');
    }
    return { circuit, recent };
  };
  const state = (): BreakerState => {
    if (windows?.circuit.opened) return 'open';
    return windows?.circuit.halfOpen ? 'half-open' : 'closed';
  };
  const record = (sample: Sample, isProbe: boolean) => {
    // A call that began before the breaker opened must not be taken for the probe when it ends late.
    if (!isProbe && state() !== 'closed') return;
    if (sample === 'good') {
      good.count = Math.min(maxGood, good.count + 1);
      good.lastAt = performance.now();
    } else windows ??= open();
    if (windows === undefined) return;
    if (sample === 'down') return windows.circuit.open();
    for (const window of [windows.circuit, windows.recent]) void window.fire(sample).catch(() => undefined);
  };
  const watch = async <T>(call: (onReply: () => void) => Promise<T>, isProbe: boolean): Promise<T> => {
    const startedAt = performance.now();
    let isReplying = false;
    const end = (error?: unknown) => {
      const sample = samples.take({ error, isReplying, tookMs: performance.now() - startedAt });
      if (sample !== undefined) record(sample, isProbe);
    };
    try {
      const result = await call(() => {
        isReplying = true;
      });
      end();
      return result;
    } catch (error) {
      end(error);
      throw error;
    }
  };
  return {
    get state() {
      return state();
    },
    get isProbing() {
      return isProbing;
    },
    get nextProbeMs() {
      return state() === 'open' ? Math.max(1, openUntil - performance.now()) : 0;
    },
    close,
    run: async (call) => {
      const isProbe = state() === 'half-open';
      if (state() === 'open' || (isProbe && isProbing)) throw new Failure('provider_unavailable');
      if (isProbe) isProbing = true;
      try {
        return await watch(call, isProbe);
      } finally {
        if (isProbe) isProbing = false;
      }
    },
  };
}

type Circuit = CircuitBreaker<[CountedSample], void>;

const createCircuit = ({ windowMs, resetMs }: { windowMs: number; resetMs: number }): Circuit =>
  new CircuitBreaker(fulfil, {
    timeout: false,
    resetTimeout: resetMs,
    rollingCountTimeout: windowMs,
    rollingCountBuckets: 20,
    rollingPercentilesEnabled: false,
    enableSnapshots: false,
    volumeThreshold,
    errorThresholdPercentage,
  });

type CountedSample = Exclude<Sample, 'down'>;

const badSample = new Error('bad sample');
const fulfil = (sample: CountedSample): Promise<void> =>
  sample === 'good' ? Promise.resolve() : Promise.reject(badSample);
