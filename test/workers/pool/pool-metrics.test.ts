import { beforeEach, describe, expect, it } from 'vitest';
import { Failure } from '../../../shared/failures.js';
import { openInstruments, type WorkerInstruments } from '../../../shared/metrics/instruments.js';
import { workerMetrics } from '../../../shared/metrics/metrics.js';
import type { Outcome } from '../../../shared/protocol/outcome.js';
import type { BreakerState } from '../../../workers/gate/breaker.js';
import { Cancelled, LockLost } from '../../../workers/gate/gated-call.js';
import { CallRecord } from '../../../workers/pool/backlog.js';
import { PoolMetrics } from '../../../workers/pool/pool-metrics.js';
import type { FinishReason } from '../../../workers/providers/provider.js';
import { callOf, meteredRow } from '../../support/calls.js';
import { readMetrics } from '../../support/metrics.js';

let instruments: WorkerInstruments;
let metrics: PoolMetrics;
let calls: CallRecord;
beforeEach(() => {
  instruments = openInstruments(workerMetrics);
  calls = new CallRecord();
  metrics = new PoolMetrics(instruments, 'bedrock', calls);
});

const scrape = async () =>
  [...readMetrics((await instruments.scrape()).text)].filter(([name]) => name.startsWith('quillgate_'));
/** The series that are not 0, without prefix and provider. */
const counted = async () => {
  const own = (await scrape()).filter(([, value]) => value !== 0);
  return Object.fromEntries(
    own.map(([name, value]) => [name.replace('quillgate_', '').replace(/provider="bedrock",?/, ''), value]),
  );
};
const end = (reason: FinishReason) => metrics.watchCall(callOf(), async () => ({ reason }));
const fail = (error: unknown) =>
  metrics.watchCall(callOf({ isRetry: true }), () => Promise.reject(error)).catch((same) => same);

describe('PoolMetrics', () => {
  it('nothing has happened -> all is zero, and only its own provider is there', async () => {
    const names = (await scrape()).map(([name]) => name);
    expect(names).toContain('quillgate_provider_calls_total{provider="bedrock",kind="retry",code="ok"}');
    expect(names.filter((name) => !name.includes('provider="bedrock"'))).toEqual([
      'quillgate_ledger_dropped_total',
    ]);
  });

  it('calls, first or retry -> counted by how they end, which is left as it is, with the time to a first delta', async () => {
    expect(await end('length')).toEqual({ reason: 'length' });
    await end('stop');
    await end('blocked');
    const limited = new Failure('provider_rate_limited');
    expect(await fail(limited)).toBe(limited);
    // The last is nothing that a call can end with.
    for (const error of [new Cancelled(), new LockLost(), new TypeError('canary'), new Failure('slug_taken')])
      await fail(error);
    const broken = metrics.watchCall(callOf(), async ({ show }) => {
      show();
      throw new Failure('provider_error');
    });
    await expect(broken).rejects.toThrow('provider_error');
    expect(await counted()).toMatchObject({
      'provider_calls_total{kind="first",code="ok"}': 2,
      'provider_calls_total{kind="first",code="content_blocked"}': 1,
      'provider_calls_total{kind="first",code="provider_error"}': 1,
      'provider_calls_total{kind="retry",code="provider_rate_limited"}': 1,
      'provider_calls_total{kind="retry",code="cancelled"}': 2,
      'provider_calls_total{kind="retry",code="internal"}': 2,
      'provider_call_duration_seconds_count{}': 9,
      'provider_first_delta_seconds_count{}': 1,
    });
  });

  it('a call that failed -> its code is the last error, unless it was cancelled or the fault of the caller', async () => {
    await end('blocked');
    await fail(new Cancelled());
    await fail(new Failure('invalid_request'));
    expect(calls.lastError).toBeUndefined();
    await fail(new Failure('provider_rejected'));
    expect(calls.lastError).toMatchObject({ code: 'provider_rejected' });
  });

  it('jobs -> counted by what became of them, their waits in seconds', async () => {
    const times = { queueMs: 1, providerMs: 1 };
    const outcomes: Outcome[] = [
      ...(['ok', 'truncated'] as const).map((kind) => ({ kind, text: '', model: 'canary', ...times })),
      ...(['blocked', 'cancelled'] as const).map((kind) => ({ kind, ...times })),
      { kind: 'failed', code: 'timeout', retryable: true, ...times },
    ];
    for (const outcome of outcomes) metrics.ended({ calls: [] }, { own: outcome, outcome });
    metrics.countJob('internal');
    expect(await counted()).toEqual({
      'jobs_total{code="ok"}': 2,
      'jobs_total{code="content_blocked"}': 1,
      'jobs_total{code="cancelled"}': 1,
      'jobs_total{code="timeout"}': 1,
      'jobs_total{code="internal"}': 1,
    });
    for (const queueMs of [1500, 0]) metrics.begun({ timings: { queueMs, providerMs: 0 } });
    expect(await counted()).toMatchObject({
      'queue_wait_seconds_sum{}': 1.5,
      'queue_wait_seconds_bucket{le="0.005",}': 1,
      'queue_wait_seconds_bucket{le="2.5",}': 2,
    });
  });

  it('a job that goes on elsewhere -> the tokens of its calls count all the same', async () => {
    const counts = { cached: 1, written: 0, writtenFor1h: 0, thinking: 2 };
    const calls = [3, 5].map((input) => meteredRow({ tokens: { input, output: 7, ...counts } }));
    metrics.ended({ calls }, undefined);
    expect(await counted()).toEqual({
      'tokens_total{direction="input"}': 8,
      'tokens_total{direction="output"}': 14,
    });
  });

  it('a scrape -> the state of the pool at that moment', async () => {
    const gate = { maxHeldMs: 2500, worstState: 'closed' as BreakerState };
    const settings = { current: { concurrency: 20 } };
    metrics.observe({ settings, load: () => ({ inFlight: 3 }), gate });
    const state = { 'pool_in_flight{}': 3, 'pool_hold_seconds{}': 2.5 };
    expect(await counted()).toEqual({
      ...{ ...state, 'pool_concurrency{}': 20 },
      'breaker_state{state="closed"}': 1,
    });
    gate.worstState = 'half-open';
    metrics.recordBreaker('half-open');
    settings.current = { concurrency: 5 };
    expect(await counted()).toEqual({
      ...{ ...state, 'pool_concurrency{}': 5 },
      'breaker_state{state="half-open"}': 1,
      'breaker_changes_total{state="half-open"}': 1,
    });
  });
});
