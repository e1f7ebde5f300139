import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { withLock } from '../../dev/lock.js';
import { makeFolder } from '../support/folders.js';

describe('withLock', () => {
  it('lets one task in at a time, also within one process', async () => {
    let inside = 0;
    const task = async () => {
      inside += 1;
      await new Promise((resolve) => setImmediate(resolve));
      return inside--;
    };
    const path = join(makeFolder(), 'lock');
    expect(await Promise.all([1, 2, 3, 4].map(() => withLock(path, task)))).toEqual([1, 1, 1, 1]);
  });

  it('is free again after a task that failed', async () => {
    const path = join(makeFolder(), 'lock');
    const failing = withLock(path, async () => {
      throw new Error('on purpose');
    });
    await expect(failing).rejects.toThrow('on purpose');
    expect(await withLock(path, async () => 'in')).toBe('in');
  });
});
