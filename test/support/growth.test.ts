import { describe, expect, it } from 'vitest';
import { growth, linear } from './growth.js';

describe('growth', () => {
  it('work that looks at each item once -> linear', async () => {
    const sum = (size: number) => {
      const numbers = Array.from({ length: size }, (_, n) => n);
      return () => numbers.reduce((total, n) => total + Math.sqrt(n), 0);
    };
    expect(await growth(sum, { upTo: 400_000 })).toBeLessThanOrEqual(linear);
  });

  it('work that looks at each pair of items -> more than linear', async () => {
    const pairs = (size: number) => () => {
      let total = 0;
      for (let a = 0; a < size; a += 1) for (let b = 0; b < size; b += 1) total += Math.sqrt(a * b);
      return total;
    };
    expect(await growth(pairs, { upTo: 4000 })).toBeGreaterThan(linear);
  });
});
