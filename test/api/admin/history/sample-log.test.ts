import { describe, expect, it } from 'vitest';
import {
  type Load,
  mergeSamples,
  SampleLog,
  type TimedSample,
} from '../../../../api/admin/history/sample-log.js';
import { recentRequest } from '../../../support/history.js';

const load: Load = { waiting: 3, active: 2, inFlight: 2, concurrency: 5 };

function open() {
  let at = 1_000_000_000;
  const log = new SampleLog({ readLoads: async () => [{ provider: 'openai', ...load }], now: () => at });
  const pass = (ms: number) => {
    at += ms;
    return log.take();
  };
  return { log, pass };
}

describe('SampleLog', () => {
  it('measures five seconds: what came, what ended and how, how long it took, and how busy everything is', async () => {
    const { log, pass } = open();
    for (let n = 0; n < 4; n += 1) log.recordArrival('openai');
    log.recordEnd(recentRequest({ queueMs: 100, providerMs: 2000 }));
    log.recordEnd(recentRequest({ queueMs: 100, providerMs: 4000, code: 'cancelled' }));
    const { queueMs: _, providerMs: __, ...refused } = recentRequest({ code: 'overloaded' });
    log.recordEnd(refused);
    await pass(5001);
    const [first, second] = mergeSamples([log.list()]);
    expect(first).toMatchObject({
      ...{ provider: 'openai', at: new Date(1_000_000_000).toISOString(), ...load },
      ...{ arrivals: 4, ended: 3, failed: 1 },
    });
    const about = (ms = 0) => [ms > 1800, ms < 2300];
    expect(about(first?.providerMs?.p50)).toEqual([true, true]);
    expect(first?.providerMs?.p95).toBeGreaterThan(3900);
    expect(second).toMatchObject({
      ...{ provider: 'anthropic', waiting: null, active: null, inFlight: null, concurrency: null },
      ...{ arrivals: 0, ended: 0, failed: 0, queueMs: null, providerMs: null },
    });
    await pass(5000);
    expect(mergeSamples([log.list()])[4]).toMatchObject({ provider: 'openai', arrivals: 0, ended: 0 });
  });

  it('keeps ten minutes, and has one sample for each five seconds whatever the clock does', async () => {
    const { log, pass } = open();
    for (let n = 0; n < 200; n += 1) await pass(5000);
    expect(log.list()).toHaveLength(4 * 120);
    await pass(1);
    expect(log.list()).toHaveLength(4 * 120);
    await pass(-3_600_000);
    expect(log.list()).toHaveLength(4);
  });
});

describe('mergeSamples', () => {
  const sample = (own: Partial<TimedSample>): TimedSample => ({
    ...{ slot: 0, provider: 'openai', ...load, arrivals: 1, ended: 1, failed: 0 },
    ...{ queueMs: { p50: 10, p95: 20 }, providerMs: null, ...own },
  });

  it('adds up what came and ended, and leaves how busy a provider is to the first that knows', () => {
    const own = sample({ waiting: null, inFlight: 7 });
    const other = sample({ waiting: 9, inFlight: 8, ended: 3, failed: 2, queueMs: { p50: 50, p95: 10 } });
    expect(mergeSamples([[own], [other, sample({ slot: 5000 })]])).toMatchObject([
      {
        ...{ at: '1970-01-01T00:00:00.000Z', waiting: 9, inFlight: 7, arrivals: 2, ended: 4, failed: 2 },
        ...{ queueMs: { p50: 40, p95: 20 }, providerMs: null },
      },
      { at: '1970-01-01T00:00:05.000Z', arrivals: 1 },
    ]);
  });
});
