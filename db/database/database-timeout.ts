import { within } from '../../shared/runtime/with-timeout.js';

/** The database has not answered in time, none of our connections to it became free, or we have closed them. */
export class DatabaseSilence extends Error {
  override readonly name = 'DatabaseSilence';

  constructor(readonly code: 'NO_ANSWER' | 'NO_FREE_CONNECTION' | 'CONNECTION_ENDED') {
    super(code);
  }
}

/** The result of the work, or `DatabaseSilence` when it takes longer than `ms` milliseconds; the work goes on. */
export const answerWithin = <T>(ms: number, work: Promise<T>): Promise<T> =>
  within(ms, work, () => new DatabaseSilence('NO_ANSWER'));
