import { spawnSync } from 'node:child_process';

declare module 'vitest' {
  interface ProvidedContext {
    /** See `measureSlowness`. */
    slowness: number;
  }
}

const tries = 5;
/**
 * A start of Node that takes longer counts as slow, in milliseconds. It took 105 on the idle machine on which six files
 * at once were too many and three were not.
 */
const usualStartMs = 60;

/**
 * How many times as long as usual a program takes to start here and now; 1 where it takes no longer. Tests start
 * hundreds of programs, and some virtual machines take three times as long for that as others.
 */
export function measureSlowness(): number {
  const startedAt = performance.now();
  for (let n = 0; n < tries; n += 1) spawnSync(process.execPath, ['-e', '0']);
  return Math.max(1, (performance.now() - startedAt) / tries / usualStartMs);
}
