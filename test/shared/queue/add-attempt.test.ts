import { expect, it } from 'vitest';
import { levelOfNth, maxShareLevel, priorityOf } from '../../../shared/queue/add-attempt.js';

it('a user with ever more jobs -> each doubling puts the next one a level further back, up to a last one', () => {
  const levels = [1, 2, 3, 4, 5, 8, 9, 32_769, 1_000_000].map(levelOfNth);
  expect(levels).toEqual([0, 1, 2, 2, 3, 3, 4, maxShareLevel, maxShareLevel]);
});

it('an asynchronous chat -> comes after each that a caller waits for', () => {
  const last = priorityOf(maxShareLevel, { isAsync: false });
  expect(priorityOf(0, { isAsync: true })).toBeGreaterThan(last);
});
