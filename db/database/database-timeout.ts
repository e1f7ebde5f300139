import { withTimeout } from '../../shared/runtime/with-timeout.js';

/** The database has not answered in time, none of our connections to it became free, or we have closed them. */
export class DatabaseTimeout extends Error {
  override readonly name = 'DatabaseTimeout';

  constructor(readonly code: 'NO_ANSWER' | 'NO_FREE_CONNECTION' | 'CONNECTION_ENDED') {
    super(code);
  }
}

/** The result of the work, or `DatabaseTimeout` when it takes longer than `ms` milliseconds; the work goes on. */
export const answerWithin = <T>(ms: number, work: Promise<T>): Promise<T> =>
  withTimeout(ms, work, () => new DatabaseTimeout('NO_ANSWER'));
