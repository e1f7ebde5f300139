import { afterAll, expect, vi } from 'vitest';

// vitest's setup of the files that share a process: with a false clock left behind the next one would wait for ever.
const { setTimeout: realTimer } = globalThis;

afterAll(() => {
  vi.useRealTimers();
  const { setTimeout: left } = globalThis;
  globalThis.setTimeout = realTimer;
  expect(left, 'the clock that the file began with').toBe(realTimer);
});
