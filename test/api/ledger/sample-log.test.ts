import { describe, expect, it } from 'vitest';
import { type Load, SampleLog } from '../../../api/ledger/sample-log.js';

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

describe('the samples', () => {
  it('are taken -> how busy each provider was at the end of five seconds', async () => {
    const { log, pass } = open();
    await pass(5001);
    expect(log.list()).toEqual([{ slot: 1_000_000_000, provider: 'openai', ...load }]);
  });

  it('are of ten minutes, and none is twice there after the clock was set back', async () => {
    const { log, pass } = open();
    for (let n = 0; n < 130; n += 1) await pass(5000);
    expect(log.list()).toHaveLength(120);
    await pass(-300_000);
    const slots = log.list().map(({ slot }) => slot);
    expect(new Set(slots).size).toBe(slots.length);
  });
});
