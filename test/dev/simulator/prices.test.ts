import { describe, expect, it } from 'vitest';
import { providerIds } from '../../../shared/contracts/contract.js';
import { openPrices } from '../../../shared/prices/prices.js';

describe('the prices of the simulator', () => {
  const prices = openPrices({ file: 'dev/simulator/prices.json' });
  const tokens = { input: 100, cached: 10, written: 0, writtenFor1h: 0, output: 20, thinking: 5 };

  it.each(providerIds)('%s -> every model of the simulator has one, and no other', (provider) => {
    for (const model of ['sim-echo', 'sim-stream-20-50', 'sim-say-3.gap-5@here']) {
      const cost = prices.costOf({ provider, model, at: 0, requests: 1, tokens });
      expect(cost.nanoDollars).toBeGreaterThan(0n);
    }
    expect(prices.isKnown(provider, 'echo')).toBe(false);
  });
});
