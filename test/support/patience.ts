/**
 * How long to wait for what takes a moment where the machine has nothing else to do, in milliseconds: no test is about that,
 * and a test that fails may take its time.
 */
export const patienceMs = 60_000;

/** For `vi.waitFor` and the like, whose own patience is a second. */
export const patience = { timeout: patienceMs, interval: 20 };
