import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  addLoad,
  addSamples,
  loadUntil,
  recentLoad,
  recordLoad,
} from '../../../console/pools/recent-load.ts';
import { followFleet } from '../../../console/store.ts';
import type { FleetProvider } from '../../../shared/fleet-contract.ts';
import type { Sample } from '../../../shared/history.ts';
import { patience } from '../../support/patience.js';
import { type StubEventSource, stubEventSources } from '../event-source.ts';

const minute = 60_000;
const start = Date.parse('2026-01-01T00:00:00Z');

const fleetOf = (inFlight: number, waiting?: number) => ({
  providers: [
    {
      ...{ provider: 'openai', state: 'serving', kind: 'real', concurrency: 5, inFlight, workers: [] },
      ...(waiting !== undefined && { queue: { waiting, active: inFlight } }),
    } as FleetProvider,
  ],
});

const sample = (time: number, own: Partial<Sample> = {}): Sample => ({
  ...{ provider: 'openai', at: new Date(time).toISOString(), waiting: 2, active: 3, inFlight: 3 },
  ...{ concurrency: 5, arrivals: 0, ended: 0, failed: 0, queueMs: null, providerMs: null },
  ...own,
});

describe('the load of ten minutes', () => {
  it('is what ran and waited, one value for five seconds, and the last one of them', () => {
    let load = addLoad(new Map(), fleetOf(3, 2), start);
    load = addLoad(load, fleetOf(4, 4), start + 4000);
    load = addLoad(load, fleetOf(1), start + 5000);
    expect(loadUntil(load, 'openai', start + 6000).slice(-3)).toEqual([null, 8, 1]);
  });

  it('begins with what was measured, and goes on with what is seen', () => {
    const samples = Array.from({ length: 120 }, (_, n) => sample(start + 5000 * n, { inFlight: n }));
    const until = start + 10 * minute;
    const measured = addSamples(new Map(), samples, until);
    const load = addLoad(measured, fleetOf(7, 1), until);
    const values = loadUntil(load, 'openai', until);
    expect(values).toHaveLength(120);
    expect([values[0], values[1], values.at(-2), values.at(-1)]).toEqual([3, 4, 121, 8]);
  });

  it('has gaps where nothing was measured, and keeps what the page has seen', () => {
    const seen = addLoad(new Map(), fleetOf(9, 9), start + 5000);
    const samples = [
      sample(start - 5000, { waiting: null }),
      sample(start, { inFlight: null, waiting: null }),
      sample(start + 5000),
      sample(start, { provider: 'bedrock', inFlight: null }),
    ];
    const load = addSamples(seen, samples, start + 5000);
    expect(loadUntil(load, 'openai', start + 5000).slice(-3)).toEqual([3, null, 18]);
    expect(loadUntil(load, 'bedrock', start + 5000).slice(-3)).toEqual([null, 2, null]);
    expect(loadUntil(load, 'vertexai', start)).toEqual(Array(120).fill(null));
  });

  it('does not grow, however long the page is open, and has nothing of the future', () => {
    let load = addSamples(new Map(), [sample(start + minute)], start);
    for (let n = 0; n < 1000; n += 1) load = addLoad(load, fleetOf(1), start + 5000 * n);
    expect(load.get('openai')?.size).toBe(120);
  });
});

describe('recordLoad', () => {
  let streams: StubEventSource[];
  let answers: (() => Response)[];
  let asked: number;
  let ends: (() => void)[];
  /** The server's clock is an hour behind. */
  const behindMs = 60 * minute;
  beforeEach(() => {
    streams = stubEventSources();
    answers = [];
    asked = 0;
    vi.stubGlobal('fetch', async () => {
      asked += 1;
      return (answers.shift() ?? Response.error)();
    });
    recentLoad.value = new Map();
    ends = [followFleet()];
  });
  afterEach(() => {
    for (const end of ends) end();
    recentLoad.value = new Map();
    vi.unstubAllGlobals();
  });

  const tell = (event: string, data: object) => streams[0]?.tell(event, data);
  const known = () => loadUntil(recentLoad.value, 'openai', Date.now()).filter((value) => value !== null);
  const serverTime = () => Date.now() - behindMs;

  it('reads what was measured, by the clock of the browser, and again after a break', async () => {
    const at = serverTime();
    answers.push(() => Response.json({ at: new Date(at).toISOString(), samples: [sample(at - minute)] }));
    ends.push(recordLoad());
    await vi.waitFor(() => expect(known()).toEqual([5]), patience);
    tell('sample', sample(at - minute + 5000, { waiting: 40 }));
    expect(known()).toEqual([5, 43]);
    const samples = [sample(at - 2 * minute, { inFlight: 0 })];
    answers.push(() => Response.json({ at: new Date(serverTime()).toISOString(), samples }));
    tell('snapshot', { providers: [] });
    await vi.waitFor(() => expect(asked).toBe(2), patience);
  });

  it('has what there is without an answer', async () => {
    ends.push(recordLoad());
    tell('sample', sample(serverTime()));
    await vi.waitFor(() => expect(asked).toBe(1), patience);
    expect(known()).toEqual([]);
  });
});
