import { afterAll, expect, vi } from 'vitest';

// vitest's setup of the files that share a process: fake timers that one left behind would make the next one wait for
// ever.
const { setTimeout: realTimer } = globalThis;

afterAll(() => {
  vi.useRealTimers();
  const { setTimeout: left } = globalThis;
  globalThis.setTimeout = realTimer;
  expect(left, 'the clock that the file began with').toBe(realTimer);
});
