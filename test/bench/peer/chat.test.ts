import { describe, expect, it } from 'vitest';
import { lengthsOf } from './chat.js';

describe('lengthsOf', () => {
  it('measures for as long as was asked when answers are short', () => {
    expect(lengthsOf({ latencyMs: 60, connections: 1 }, 2)).toEqual({
      ...{ seconds: 2, warmUpSeconds: 1, timeoutSeconds: 10 },
    });
  });

  it('measures for several times as long as an answer takes', () => {
    expect(lengthsOf({ latencyMs: 5000, connections: 1 }, 2)).toEqual({
      ...{ seconds: 40, warmUpSeconds: 10, timeoutSeconds: 15 },
    });
  });
});
