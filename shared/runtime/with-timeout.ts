/**
 * The result of the work, or a rejection when it takes longer than `ms` milliseconds, with the error of `tooLate`; the
 * work itself goes on.
 */
export function withTimeout<T>(ms: number, work: Promise<T>, tooLate = noAnswer): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(tooLate()), ms);
  return Promise.race([work, promise]).finally(() => clearTimeout(timer));
}

const noAnswer = (): Error => new Error('no answer in time');
