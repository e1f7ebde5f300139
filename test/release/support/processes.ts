import { readdirSync, readFileSync } from 'node:fs';

/** A process that was seen running; the time of its start tells it from a later one with the same id. */
export interface SeenProcess {
  readonly pid: number;
  readonly startedAt: string;
  readonly command: string;
}

/** The process and all that descends from it. */
export function familyOf(pid: number): SeenProcess[] {
  const all = everyProcess();
  const familyFrom = (parent: number): typeof all => [
    ...all.filter((one) => one.pid === parent),
    ...all.filter((one) => one.parent === parent).flatMap((one) => familyFrom(one.pid)),
  ];
  return familyFrom(pid);
}

/** Process id of the first program of this name below a start that is not the one that was seen before. */
export function programPid(
  start: { family(): SeenProcess[] },
  program: string,
  { after }: { after?: number } = {},
): number {
  const isIt = ({ command }: SeenProcess) => command.includes(`/dist/programs/${program}.js`);
  const found = start.family().find((one) => isIt(one) && one.pid !== after);
  if (found === undefined) throw new Error(`no ${program} runs`);
  return found.pid;
}

/** The processes that still run; a zombie does not. */
export function stillRunning(seen: readonly SeenProcess[]): SeenProcess[] {
  const running = new Set(everyProcess().map(({ pid, startedAt }) => `${pid} ${startedAt}`));
  return seen.filter(({ pid, startedAt }) => running.has(`${pid} ${startedAt}`));
}

/** Every process that runs; zombies do not. */
export function everyProcess(): (SeenProcess & { parent: number })[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => describe(Number(pid)));
}

function describe(pid: number): (SeenProcess & { parent: number })[] {
  try {
    // The name, in parentheses, may hold anything; the fields after it are separated by spaces.
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (fields[0] === 'Z' || fields[0] === 'X') return [];
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
    return [{ pid, parent: Number(fields[1]), startedAt: fields[19] ?? '', command }];
  } catch {
    return [];
  }
}
