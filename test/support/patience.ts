/**
 * The timeout in milliseconds for what takes a moment on an idle machine: long, because no test is about it, and only a
 * test that fails waits for it.
 */
export const patienceMs = 60_000;

/** For `vi.waitFor` and the like, whose default timeout is a second. */
export const patience = { timeout: patienceMs, interval: 20 };
