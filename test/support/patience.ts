/**
 * The timeout in milliseconds for what takes a moment on an idle machine: almost the limit of a test, because no test
 * is about it. Only a test that fails waits for it, and then it says what did not come.
 */
export const patienceMs = 170_000;

/** For `vi.waitFor` and the like, whose default timeout is a second. */
export const patience = { timeout: patienceMs, interval: 20 };
