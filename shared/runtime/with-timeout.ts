/** A store that has not answered by then counts as down, in milliseconds. */
export const storeTimeoutMs = 2500;

/** Gives the result of the work, or the error of `tooLate` after `ms` milliseconds; the work itself goes on. */
export function withTimeout<T>(ms: number, work: Promise<T>, tooLate = noAnswer): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(tooLate()), ms);
  return Promise.race([work, promise]).finally(() => clearTimeout(timer));
}

const noAnswer = (): Error => new Error('no answer in time');
