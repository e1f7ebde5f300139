/**
 * How a cost is allowed to grow when the work becomes sixteen times as long: 16 is linear, 256 quadratic. A processor
 * whose other half is busy meanwhile, or a collection of garbage, makes three times as much of it at most.
 */
export const linear = 64;

interface GrowthOptions {
  /** The size of the longer work; the shorter one has a sixteenth of it. */
  readonly upTo: number;
  /** The cost of one run, in milliseconds: without it, the processor time of this process. */
  readonly cost?: (work: () => unknown) => Promise<number>;
}

/**
 * How many times as much the work costs when it is sixteen times as long. It takes the least of five tries for each
 * length, because any disturbance of a measurement adds to it.
 *
 * @param make prepares work of this size; preparing it is not measured, and each try gets work of its own.
 */
export async function growth(
  make: (size: number) => () => unknown,
  { upTo, cost = cpuMsOf }: GrowthOptions,
): Promise<number> {
  const short = Math.ceil(upTo / 16);
  // The first run pays for what the others find compiled.
  await cost(make(short));
  let least = { short: Number.POSITIVE_INFINITY, long: Number.POSITIVE_INFINITY };
  for (let n = 0; n < tries; n += 1)
    least = {
      short: Math.min(least.short, await cost(make(short))),
      long: Math.min(least.long, await cost(make(16 * short))),
    };
  return Math.max(least.long, smallestMs) / Math.max(least.short, smallestMs);
}

const tries = 5;
/** A smaller cost does no harm, and the clock cannot tell it from nothing. */
const smallestMs = 0.1;

/**
 * The processor time in milliseconds that the work took in this process, independent of other programs. That of a
 * thread alone would leave out the compiler, but Linux counts it in steps of 4 ms.
 */
async function cpuMsOf(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
