import CircuitBreaker from 'opossum';
import { Failure } from '../shared/failures.js';
import { CallSamples, type Sample } from './call-samples.js';

/** `closed` lets every call through, `open` none, `half-open` one at a time to find out. */
export type BreakerState = 'closed' | 'open' | 'half-open';

export interface Breaker {
  readonly state: BreakerState;
  /** Whether it is half-open and its one call is under way. */
  readonly isProbing: boolean;
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
  onChange: (state: BreakerState) => void;
}

/** Below this many samples in the window the breaker stays closed. */
const volumeThreshold = 5;
const errorThresholdPercentage = 50;
/** At 0.3 requests/s five samples take 17 s. */
const minWindowMs = 30_000;

/** What fails fast gives many samples in this time; in the long window good ones of a minute ago would outweigh them. */
const shortWindowMs = 10_000;

/**
 * A circuit breaker that judges only what says something about the provider's health: opossum is told each sample
 * after the call instead of wrapping it, because whatever it wraps counts as either failure or success.
 * Calls end by their own signals, so opossum's timeout is off; nothing it wraps can hang.
 */
export function createBreaker({ timeoutMs, resetMs, onChange }: BreakerOptions): Breaker {
  const windowMs = Math.max(2 * timeoutMs, minWindowMs);
  const samples = new CallSamples();
  // The failures that opened it are over when it closes; without fresh windows the next single one would open it again.
  const renew = () => {
    close();
    circuit = open();
    recent = openRecent();
    onChange('closed');
  };
  const open = () =>
    createCircuit({ windowMs, resetMs })
      .on('open', () => onChange('open'))
      .on('halfOpen', () => onChange('half-open'))
      .on('close', renew);
  const openRecent = () =>
    createCircuit({ windowMs: shortWindowMs, resetMs }).on('open', () => circuit.open());
  const close = () => {
    circuit.shutdown();
    recent.shutdown();
  };
  let circuit = open();
  /** Only counts; its state is not asked. */
  let recent = openRecent();
  let probing = false;
  const state = (): BreakerState => (circuit.opened ? 'open' : circuit.halfOpen ? 'half-open' : 'closed');
  // A call that began before the breaker opened must not be taken for the probe when it ends late.
  const record = (sample: Sample, probe: boolean) => {
    if (!probe && !circuit.closed) return;
    if (sample === 'down') return circuit.open();
    for (const window of [circuit, recent]) void window.fire(sample).catch(() => undefined);
  };
  const watch = async <T>(call: (onReply: () => void) => Promise<T>, probe: boolean): Promise<T> => {
    const startedAt = performance.now();
    let isReplying = false;
    const end = (error?: unknown) => {
      const sample = samples.take({ error, isReplying, tookMs: performance.now() - startedAt });
      if (sample !== undefined) record(sample, probe);
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
      return probing;
    },
    close,
    run: async (call) => {
      const probe = state() === 'half-open';
      if (state() === 'open' || (probe && probing)) throw new Failure('provider_unavailable');
      if (probe) probing = true;
      try {
        return await watch(call, probe);
      } finally {
        if (probe) probing = false;
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
