import { describe, expect, it } from 'vitest';
import { CompilingCalls } from '../../../workers/gate/compiling-calls.js';

describe('CompilingCalls', () => {
  it('a thousand schemas that were used -> they are known, and another one replaces the one used longest ago', () => {
    const compiling = new CompilingCalls();
    for (let n = 0; n < 1000; n += 1) compiling.recordUse(`${n}`);
    compiling.recordUse('0');
    compiling.recordUse('another');
    const known = ['0', '1', '2', 'another'].map((schema) => !compiling.isNew(schema));
    expect(known).toEqual([true, false, true, true]);
    expect(compiling.isNew(undefined)).toBe(false);
  });
});
