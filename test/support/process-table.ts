import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';

/** The facts that the operating system has of one process. */
export interface ProcessFacts {
  readonly parent: number;
  /** Its own, and that of its children that have ended. */
  readonly cpuSeconds: number;
  /** Resident memory that is its own, and that it shares with others or a file. */
  memory(): { ownBytes: number; sharedBytes: number };
}

export type ProcessTable = ReadonlyMap<number, ProcessFacts>;

/** Every process there is now, by id: from /proc, or from `ps`, which counts shared memory in each process. */
export const readProcessTable = (): ProcessTable =>
  new Map(existsSync('/proc/self/stat') ? readProc() : readPs());

/** The process and everything it has started, at any depth. */
function family(table: ProcessTable, root: number | undefined): number[] {
  if (root === undefined || !table.has(root)) return [];
  const members = [root];
  for (const member of members) {
    for (const [pid, { parent }] of table) if (parent === member) members.push(pid);
  }
  return members;
}

/** Of a process and everything it has started. */
export const cpuSecondsOf = (table: ProcessTable, root: number | undefined): number =>
  family(table, root).reduce((sum, pid) => sum + (table.get(pid)?.cpuSeconds ?? 0), 0);

/**
 * Resident bytes of a process and everything it has started; 0 for none. PostgreSQL's processes share one big piece of
 * memory, which must not be counted in each of them.
 */
export function memoryOf(table: ProcessTable, root: number | undefined): number {
  const memories = family(table, root).flatMap((pid) => table.get(pid)?.memory() ?? []);
  const own = memories.reduce((sum, { ownBytes }) => sum + ownBytes, 0);
  return own + Math.max(0, ...memories.map(({ sharedBytes }) => sharedBytes));
}

/** The kernel's unit of time for user space, on every platform Node runs on. */
const ticksPerSecond = 100;

function readProc(): [number, ProcessFacts][] {
  return readdirSync('/proc').flatMap((name): [number, ProcessFacts][] => {
    const stat = Number(name) > 0 ? readOrEmpty(`/proc/${name}/stat`) : '';
    return stat === '' ? [] : [[Number(name), parseStat(name, stat)]];
  });
}

/** See proc_pid_stat(5); the fields are counted from the third, because the second may hold spaces. */
function parseStat(pid: string, stat: string): ProcessFacts {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
  return {
    parent: Number(fields[1]),
    cpuSeconds: ticks / ticksPerSecond,
    memory: () => {
      const status = readOrEmpty(`/proc/${pid}/status`);
      const bytes = (name: string) =>
        1024 * Number(new RegExp(`^${name}:\\s*(\\d+) kB$`, 'm').exec(status)?.[1] ?? 0);
      return { ownBytes: bytes('RssAnon'), sharedBytes: bytes('RssFile') + bytes('RssShmem') };
    },
  };
}

/** A process may end between two looks. */
function readOrEmpty(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function readPs(): [number, ProcessFacts][] {
  const lines = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,rss=,time='], { encoding: 'utf8' });
  return lines
    .trim()
    .split('\n')
    .map((line) => {
      const [pid, parent, rssKib, time = ''] = line.trim().split(/\s+/);
      const cpuSeconds = time.split(':').reduce((sum, part) => sum * 60 + Number(part), 0);
      const memory = () => ({ ownBytes: 1024 * Number(rssKib), sharedBytes: 0 });
      return [Number(pid), { parent: Number(parent), cpuSeconds, memory }];
    });
}
