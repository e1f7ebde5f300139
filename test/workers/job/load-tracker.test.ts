import { describe, expect, it } from 'vitest';
import type { FailureCode } from '../../../shared/failures.js';
import type { Outcome } from '../../../shared/protocol/outcome.js';
import { LoadTracker } from '../../../workers/job/load-tracker.js';

const answer = (providerMs: number): Outcome => ({
  kind: 'ok',
  text: '',
  model: 'm',
  queueMs: 0,
  providerMs,
});
const failure = (code: FailureCode, providerMs: number): Outcome => ({
  kind: 'failed',
  code,
  retryable: true,
  queueMs: 0,
  providerMs,
});
const timeout = (providerMs: number) => failure('provider_timeout', providerMs);

describe('LoadTracker', () => {
  it('knows no mean before the first call, takes the first for it, and then follows slowly', () => {
    const load = new LoadTracker();
    expect(load.meanJobMs).toBe(0);
    load.recordOutcome(answer(40));
    expect(load.meanJobMs).toBe(40);
    load.recordOutcome(answer(20));
    expect(load.meanJobMs).toBe(39);
    for (let n = 0; n < 100; n += 1) load.recordOutcome(answer(1));
    expect(load.meanJobMs).toBeLessThan(4);
  });

  it('learns from a call that timed out only that calls may take longer', () => {
    const load = new LoadTracker();
    load.recordOutcome(answer(40));
    load.recordOutcome(timeout(20));
    expect(load.meanJobMs).toBe(40);
    load.recordOutcome(timeout(60));
    expect(load.meanJobMs).toBe(41);
  });

  it('learns nothing from calls that failed or were cancelled, nor from jobs without a call', () => {
    const load = new LoadTracker();
    load.recordOutcome(answer(40));
    load.recordOutcome(failure('provider_error', 60));
    load.recordOutcome({ kind: 'cancelled', queueMs: 0, providerMs: 60 });
    load.recordOutcome({ kind: 'blocked', queueMs: 0, providerMs: 0 });
    // By a clock that was put back.
    load.recordOutcome(answer(-500));
    expect(load.meanJobMs).toBe(40);
  });
});
