import { describe, expect, it } from 'vitest';
import { diffSettings } from '../../../console/views/audit.tsx';

describe('diffSettings', () => {
  it('has what was set, changed and taken back, by name, and nothing else', () => {
    const before = { timeoutMs: 45_000, concurrency: 20, model: 'a', rate: { max: 1, durationMs: 2 } };
    const after = { concurrency: 40, rate: { durationMs: 2, max: 1 }, model: 'a', fallback: [] };
    expect(diffSettings(before, after)).toEqual([
      { name: 'concurrency', before: '20', after: '40' },
      { name: 'fallback', before: undefined, after: '[]' },
      { name: 'timeoutMs', before: '45000', after: undefined },
    ]);
  });

  it.each([undefined, null, 5, 'x'])('takes %j for nothing set', (nothing) => {
    expect(diffSettings(nothing, nothing)).toEqual([]);
  });
});
