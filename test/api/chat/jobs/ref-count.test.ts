import { expect, it } from 'vitest';
import { createRefCounts } from '../../../../api/chat/jobs/ref-count.js';

it('begins for the first who wants the same, and ends with the last', () => {
  let counted = 0;
  const begin = () => {
    counted += 1;
    const release = () => {
      counted -= 1;
    };
    return { release };
  };
  const count = createRefCounts();
  const [first, second, other] = [count('one', begin), count('one', begin), count('two', begin)];
  expect(counted).toBe(2);
  first.release();
  expect(counted).toBe(2);
  second.release();
  expect(counted).toBe(1);
  const again = count('one', begin);
  expect(counted).toBe(2);
  again.release();
  other.release();
  expect(counted).toBe(0);
});
