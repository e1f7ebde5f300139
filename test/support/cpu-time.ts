/**
 * The processor time in milliseconds that the work took in this process, independent of the machine's load. Nothing
 * else may run in this process meanwhile.
 */
export async function cpuMsOf(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
