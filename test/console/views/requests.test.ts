import { describe, expect, it } from 'vitest';
import { describeNone, parametersOf } from '../../../console/views/requests.tsx';

describe('parametersOf', () => {
  it("takes the form's times as UTC, and everything else as it is", () => {
    expect(
      parametersOf(new URLSearchParams('user=ann&from=2026-12-01T14:03&to=2026-12-02T00:00:30')),
    ).toEqual({
      ...{ user: 'ann', from: '2026-12-01T14:03:00.000Z', to: '2026-12-02T00:00:30.000Z' },
    });
  });
});

describe('describeNone', () => {
  it('says what to do in an empty ledger, and else since when it counts', () => {
    const since = '2026-12-01T14:03:22.000Z';
    expect(describeNone(null, false, false)).toMatch(/Send one/);
    expect(describeNone(since, false, true)).toBe(
      'No request is like that. Requests are kept since 2026-12-01 14:03:22 UTC.',
    );
    expect(describeNone(since, true, true)).toMatch(/^None in the last seven days/);
  });
});
