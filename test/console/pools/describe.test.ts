import { describe, expect, it } from 'vitest';
import {
  describeIntake,
  describeProvider,
  failingFirst,
  p95Of,
  reachOf,
} from '../../../console/pools/describe.ts';
import type { FleetProvider, FleetWorker } from '../../../shared/contracts/fleet-contract.ts';
import { fleetWorker as worker } from '../fleet-worker.ts';

const provider = (workers: FleetWorker[], state: FleetProvider['state']): FleetProvider => ({
  ...{ provider: 'openai', state, kind: 'real', concurrency: 1, inFlight: 0, workers },
});

const ofOneUser = { model: null, state: 'open', reason: 'credentials', user: 'm' } as const;

describe('describeIntake', () => {
  it.each([
    ['paused', 3, 0, 'Paused: 3 chats wait. Choose Open to resume.'],
    ['paused', 1, 0, 'Paused: 1 chat waits. Choose Open to resume.'],
    ['paused', undefined, 0, 'Paused: all chats wait. Choose Open to resume.'],
    ['draining', 3, 2, 'Draining: new chats are refused, 5 finish. Choose Open to resume.'],
    ['draining', 0, 1, 'Draining: new chats are refused, 1 finishes. Choose Open to resume.'],
    ['draining', undefined, 1, 'Draining: new chats are refused, the others finish. Choose Open to resume.'],
    [
      null,
      0,
      1,
      'Drain: new chats are refused, the others finish. Pause: 0 waiting chats stay queued; 1 running call finishes.',
    ],
  ])('says of %s, with %j waiting and %d running, what happens', (intake, waiting, inFlight, text) => {
    const queue = waiting === undefined ? {} : { queue: { waiting } as NonNullable<FleetProvider['queue']> };
    expect(describeIntake(intake, { ...provider([], 'serving'), inFlight, ...queue })).toBe(text);
  });
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
    // A model's breaker is no reason for the whole pool, and neither is one user's.
    [worker({ breakers: [{ model: 'gpt', state: 'open', reason: 'provider_error' }] }), 'serving'],
    [worker({ state: 'paused', breakers: [ofOneUser] }), 'paused'],
  ])('says why, each reason once', (one, text) => {
    expect(describeProvider(provider([one, one], one.state), null).text).toBe(text);
  });

  it('says that it is failing although it takes jobs, and has such pools first', () => {
    const failing = { ...provider([worker()], 'serving'), failing: { code: 'provider_error', since: '' } };
    expect(describeProvider(failing, null)).toEqual({ text: 'failing: provider error', tone: 'bad' });
    const ofOne = { ...failing, chats: { ended: 10, failed: 9, code: 'timeout', model: 'gpt' } };
    expect(describeProvider(ofOne, null).text).toBe('failing: provider error of gpt');
    const well = provider([worker()], 'serving');
    expect(failingFirst([well, failing])).toEqual([failing, well]);
  });

  it('says that it drains', () => {
    expect(describeProvider(provider([worker()], 'serving'), 'draining').text).toBe('draining');
  });
});

describe('p95Of', () => {
  it('has that of the slowest worker, and leaves out silent ones', () => {
    const calls = (p95: number) => ({
      calls: { count: 9, errorRate: 0, rateLimitRate: 0, latencyMs: { p50: 1, p95 } },
    });
    const workers = [worker(calls(20)), worker(calls(90)), worker({ state: 'silent', ...calls(900) })];
    expect(p95Of(workers)).toBe(90);
    expect(p95Of([worker({})])).toBeUndefined();
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
