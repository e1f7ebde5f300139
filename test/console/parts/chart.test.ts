import { describe, expect, it } from 'vitest';
import { linesOf } from '../../../console/parts/chart.tsx';

describe('linesOf', () => {
  it('draws from value to value, begins anew after a gap, and shows a value that stands alone', () => {
    expect(linesOf([null, 1, 2, null, 0], 10)).toBe('M10.0 1.0h0L20.0 2.0h0M40.0 0.0h0');
    expect(linesOf([null], 10)).toBe('');
  });
});
