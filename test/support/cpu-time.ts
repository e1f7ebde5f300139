/**
 * How many milliseconds of the processors' time the work took of this process, whatever else the machine was doing; nothing
 * else may be under way here.
 */
export async function cpuMsOf(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
