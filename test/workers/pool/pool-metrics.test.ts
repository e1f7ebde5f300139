import { beforeEach, describe, expect, it } from 'vitest';
import { Failure } from '../../../shared/failures.js';
import { openInstruments, type WorkerInstruments } from '../../../shared/metrics/instruments.js';
import { workerMetrics } from '../../../shared/metrics/metrics.js';
import type { Outcome } from '../../../shared/protocol/outcome.js';
import type { BreakerState } from '../../../workers/gate/breaker.js';
import { Cancelled, LockLost } from '../../../workers/gate/ends.js';
import { CallRecord } from '../../../workers/pool/call-record.js';
import { PoolMetrics } from '../../../workers/pool/pool-metrics.js';
import type { FinishReason } from '../../../workers/providers/provider.js';
import { callOf } from '../../support/calls.js';
import { readMetrics } from '../../support/metrics.js';

let instruments: WorkerInstruments;
let metrics: PoolMetrics;
let calls: CallRecord;
beforeEach(() => {
  instruments = openInstruments(workerMetrics);
  calls = new CallRecord();
  metrics = new PoolMetrics(instruments, 'bedrock', calls);
});

/** The series that are not 0, without prefix and provider. */
const counted = async () => {
  const all = readMetrics((await instruments.scrape()).text);
  const own = [...all].filter(([name, value]) => name.startsWith('quillgate_') && value !== 0);
  return Object.fromEntries(
    own.map(([name, value]) => [name.replace('quillgate_', '').replace(/provider="bedrock",?/, ''), value]),
  );
};
const first = callOf();
const end = (reason: FinishReason) => async () => ({ reason });
const fail = (error: unknown) =>
  metrics.watchCall(callOf({ isRetry: true }), () => Promise.reject(error)).catch((same) => same);

describe('PoolMetrics', () => {
  it('begins at zero, and only for its own provider', async () => {
    const series = [...readMetrics((await instruments.scrape()).text).keys()];
    const ours = series.filter((name) => name.startsWith('quillgate_'));
    expect(ours).toContain('quillgate_provider_calls_total{provider="bedrock",kind="retry",code="ok"}');
    expect(ours.filter((name) => !name.includes('provider="bedrock"'))).toEqual([]);
  });

  it('counts how each call ended, first or retry, and returns what it did', async () => {
    expect(await metrics.watchCall(first, end('length'))).toEqual({ reason: 'length' });
    await metrics.watchCall(first, end('stop'));
    await metrics.watchCall(first, end('blocked'));
    const limited = new Failure('provider_rate_limited');
    expect(await fail(limited)).toBe(limited);
    await fail(new Cancelled());
    await fail(new LockLost());
    await fail(new TypeError('canary'));
    // Nothing that a call can end with.
    await fail(new Failure('slug_taken'));
    expect(await counted()).toMatchObject({
      'provider_calls_total{kind="first",code="ok"}': 2,
      'provider_calls_total{kind="first",code="content_blocked"}': 1,
      'provider_calls_total{kind="retry",code="provider_rate_limited"}': 1,
      'provider_calls_total{kind="retry",code="cancelled"}': 2,
      'provider_calls_total{kind="retry",code="internal"}': 2,
      'provider_call_duration_seconds_count{}': 8,
    });
  });

  it('remembers the code of a call that failed, but not of a cancel or of a fault of the caller', async () => {
    await metrics.watchCall(first, end('blocked'));
    await fail(new Cancelled());
    await fail(new Failure('invalid_request'));
    expect(calls.lastError).toBeUndefined();
    await fail(new Failure('provider_rejected'));
    expect(calls.lastError).toMatchObject({ code: 'provider_rejected' });
  });

  it('records the time to the first delta of the calls that have one', async () => {
    const begun = async ({ begin }: { begin(): void }) => {
      begin();
      throw new Failure('provider_error');
    };
    await metrics.watchCall(callOf(), begun).catch(() => undefined);
    await metrics.watchCall(first, end('stop'));
    expect(await counted()).toMatchObject({
      'provider_first_delta_seconds_count{}': 1,
      'provider_call_duration_seconds_count{}': 2,
    });
  });

  it('counts what became of each job', async () => {
    const times = { queueMs: 1, providerMs: 1 };
    const outcomes: Outcome[] = [
      { kind: 'ok', text: '', model: 'canary', ...times },
      { kind: 'truncated', text: '', model: 'canary', ...times },
      { kind: 'blocked', ...times },
      { kind: 'cancelled', ...times },
      { kind: 'failed', code: 'timeout', retryable: true, ...times },
    ];
    for (const outcome of outcomes) metrics.ended(undefined, { own: outcome, outcome });
    metrics.countJob('internal');
    expect(await counted()).toEqual({
      'jobs_total{code="ok"}': 2,
      'jobs_total{code="content_blocked"}': 1,
      'jobs_total{code="cancelled"}': 1,
      'jobs_total{code="timeout"}': 1,
      'jobs_total{code="internal"}': 1,
    });
  });

  it('takes waits in milliseconds and records them in seconds', async () => {
    for (const queueMs of [1500, 0]) metrics.begun({ timings: { queueMs, providerMs: 0 } });
    expect(await counted()).toMatchObject({
      'queue_wait_seconds_sum{}': 1.5,
      'queue_wait_seconds_bucket{le="0.005",}': 1,
      'queue_wait_seconds_bucket{le="2.5",}': 2,
    });
  });

  it('shows the state of the pool at the moment of the scrape', async () => {
    const gate = { maxHeldMs: 2500, worstState: 'closed' as BreakerState };
    const settings = { current: { concurrency: 20 } };
    metrics.observe({ settings, load: () => ({ inFlight: 3 }), gate });
    expect(await counted()).toEqual({
      'pool_in_flight{}': 3,
      'pool_concurrency{}': 20,
      'pool_hold_seconds{}': 2.5,
      'breaker_state{state="closed"}': 1,
    });
    gate.worstState = 'half-open';
    metrics.recordBreaker('half-open');
    expect(await counted()).toMatchObject({
      'breaker_state{state="half-open"}': 1,
      'breaker_changes_total{state="half-open"}': 1,
    });
    settings.current = { concurrency: 5 };
    expect(await counted()).toMatchObject({ 'pool_concurrency{}': 5 });
  });
});
