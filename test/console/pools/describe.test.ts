import { describe, expect, it } from 'vitest';
import { describeProvider, failingFirst, reachOf, sumCalls } from '../../../console/pools/describe.ts';
import type { FleetProvider, FleetWorker } from '../../../shared/fleet-contract.ts';
import { fleetWorker as worker } from '../fleet-worker.ts';

const provider = (workers: FleetWorker[], state: FleetProvider['state']): FleetProvider => ({
  ...{ provider: 'openai', state, kind: 'real', concurrency: 1, inFlight: 0, workers },
});

describe('describeProvider', () => {
  it.each([
    [worker({ state: 'paused', pausedBy: 'operator' }), 'paused: by an operator'],
    [worker({ state: 'paused', pausedBy: 'clock' }), 'paused: its clock differs'],
    [
      worker({ state: 'paused', breakers: [{ model: null, state: 'open', reason: 'credentials' }] }),
      'paused: the provider refuses the credentials',
    ],
    [
      worker({ state: 'probing', breakers: [{ model: null, state: 'half-open', reason: 'provider_error' }] }),
      'probing: provider error',
    ],
    // A model's breaker is no reason for the whole pool.
    [worker({ breakers: [{ model: 'gpt', state: 'open', reason: 'provider_error' }] }), 'serving'],
  ])('says why, each reason once', (one, text) => {
    expect(describeProvider(provider([one, one], one.state), null).text).toBe(text);
  });

  it('says that it is failing although it takes jobs, and has such pools first', () => {
    const failing = { ...provider([worker()], 'serving'), failing: { code: 'provider_error', since: '' } };
    expect(describeProvider(failing, null)).toEqual({ text: 'failing: provider error', tone: 'bad' });
    const well = provider([worker()], 'serving');
    expect(failingFirst([well, failing])).toEqual([failing, well]);
  });

  it('says that it drains', () => {
    expect(describeProvider(provider([worker()], 'serving'), 'draining').text).toBe('draining');
  });
});

describe('sumCalls', () => {
  it('weighs the shares by the calls, and leaves out silent workers', () => {
    const calls = (count: number, errorRate: number, p95: number) => ({
      calls: { count, errorRate, rateLimitRate: 0, latencyMs: { p50: 1, p95 } },
    });
    const workers = [
      worker(calls(300, 0.1, 20)),
      worker(calls(100, 0.5, 90)),
      worker({ state: 'silent', ...calls(900, 1, 900) }),
    ];
    expect(sumCalls(workers)).toEqual({ count: 400, errorRate: 0.2, rateLimitRate: 0, p95Ms: 90 });
    expect(sumCalls([])).toEqual({ count: 0, errorRate: 0, rateLimitRate: 0, p95Ms: undefined });
  });
});

describe('reachOf', () => {
  it('counts live workers that have the version or a later one', () => {
    const workers = [
      worker({ settingsVersion: 3 }),
      worker({ settingsVersion: 4 }),
      worker({ settingsVersion: 2 }),
      worker({ state: 'silent', settingsVersion: 3 }),
    ];
    expect(reachOf(workers, 3)).toEqual({ live: 3, current: 2 });
  });
});
