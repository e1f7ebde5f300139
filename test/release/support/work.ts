const megabyte = `[${Array(520_000).fill('0').join()}]`;

/** The processor time of this thread that the work takes at least, in milliseconds: the least of so many times. */
export function leastMsOf(work: () => unknown, times = 5): number {
  const tries = Array.from({ length: times }, () => {
    const before = process.threadCpuUsage();
    work();
    const { user, system } = process.threadCpuUsage(before);
    return (user + system) / 1000;
  });
  return Math.min(...tries);
}

/** The time to parse a megabyte of numbers here and now, in the same way. */
export const unitMs = (): number => leastMsOf(() => JSON.parse(megabyte));
