/** The result of the work, or a rejection when it takes longer than `ms` milliseconds; the work itself goes on. */
export function within<T>(ms: number, work: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error('no answer in time')), ms);
  return Promise.race([work, promise]).finally(() => clearTimeout(timer));
}
