/** The database has not answered in time, none of our connections to it became free, or we have closed them. */
export class DatabaseSilence extends Error {
  override readonly name = 'DatabaseSilence';

  constructor(readonly code: 'NO_ANSWER' | 'NO_FREE_CONNECTION' | 'CONNECTION_ENDED') {
    super(code);
  }
}

/** The result of the work, or `DatabaseSilence` when it takes longer than `ms` milliseconds; the work goes on. */
export function answerWithin<T>(ms: number, work: Promise<T>, onSilence?: () => void): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    reject(new DatabaseSilence('NO_ANSWER'));
    onSilence?.();
  }, ms);
  return Promise.race([work, promise]).finally(() => clearTimeout(timer));
}
