import { describe, expect, it } from 'vitest';
import { runsOf } from '../../../console/parts/chart.tsx';

describe('runsOf', () => {
  it('parts the values at their gaps', () => {
    expect(runsOf([null, 1, 2, null, null, 0, 3])).toEqual([
      { from: 1, values: [1, 2] },
      { from: 5, values: [0, 3] },
    ]);
    expect(runsOf([])).toEqual([]);
    expect(runsOf([null])).toEqual([]);
  });

  it('makes a line of a value that stands alone', () => {
    expect(runsOf([null, 4, null])).toEqual([{ from: 0, values: [4, 4] }]);
  });
});
