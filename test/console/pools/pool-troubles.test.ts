import { describe, expect, it } from 'vitest';
import { openBreakersOf } from '../../../console/pools/pool-troubles.tsx';
import type { FleetBreaker, FleetWorker } from '../../../shared/contracts/fleet-contract.ts';
import { fleetWorker } from '../fleet-worker.ts';

const worker = (breakers: FleetBreaker[], state: FleetWorker['state'] = 'serving') =>
  fleetWorker({ breakers, state });

describe('openBreakersOf', () => {
  it('counts the workers with the same breaker, with the earliest probe and the account first', () => {
    const open = (nextProbeAt: string): FleetBreaker => ({
      ...{ model: 'gpt', state: 'open', reason: 'provider_timeout', nextProbeAt },
    });
    const workers = [
      worker([open('2026-01-01T00:00:09.000Z')]),
      worker([open('2026-01-01T00:00:05.000Z'), { model: null, state: 'limited' }]),
    ];
    expect(openBreakersOf(workers)).toEqual([
      {
        ...{ target: 'all models', text: 'limited', tone: 'warn', workers: 1 },
        ...{ nextProbeAt: undefined, idleSince: undefined },
      },
      {
        ...{ target: 'gpt', text: 'open: provider timeout', tone: 'bad', workers: 2 },
        ...{ nextProbeAt: '2026-01-01T00:00:05.000Z', idleSince: undefined },
      },
    ]);
  });

  it('has those that wait for a call last, in grey, and since when', () => {
    const half = (since: string): FleetBreaker => ({ model: 'a', state: 'half-open', since });
    const workers = [
      worker([half('2026-01-01T00:00:09.000Z'), { model: 'b', state: 'open' }]),
      worker([half('2026-01-01T00:00:05.000Z')]),
    ];
    expect(openBreakersOf(workers)).toMatchObject([
      { target: 'b', tone: 'bad', idleSince: undefined },
      { target: 'a', tone: 'soft', workers: 2, idleSince: '2026-01-01T00:00:05.000Z' },
    ]);
  });

  it('says of breakers that refuse or hold one user alone for how many, after those of all and never in red', () => {
    const refused = (user: string, model: string | null = 'a'): FleetBreaker => ({
      ...{ model, user, state: 'open', reason: 'provider_error' },
    });
    const workers = [
      worker([refused('m', null), refused('m'), { model: 'b', state: 'half-open' }]),
      worker([refused('n'), { ...refused('n'), state: 'limited' }]),
      worker([refused('n')]),
    ];
    expect(openBreakersOf(workers).map(({ target, text, tone }) => [target, text, tone])).toEqual([
      ['b', 'half-open', 'soft'],
      ['all models', 'refused for 1 user: provider error', 'warn'],
      ['a', 'refused for 2 users: provider error', 'warn'],
      ['a', 'limited for 1 user: provider error', 'warn'],
    ]);
  });

  it('leaves out what a silent worker said last', () => {
    expect(openBreakersOf([worker([{ model: null, state: 'open' }], 'silent')])).toEqual([]);
  });
});
