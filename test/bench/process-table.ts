import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';

/** What the operating system says of one process. */
export interface ProcessFacts {
  readonly parent: number;
  readonly cpuSeconds: number;
  /** CPU time of its children that have ended. */
  readonly endedChildrenCpuSeconds: number;
  /** Resident memory that is its own, and that it shares with others or a file. */
  memory(): { ownBytes: number; sharedBytes: number };
}

export type ProcessTable = ReadonlyMap<number, ProcessFacts>;

const fromProc = existsSync('/proc/self/stat');

/** How the numbers are had, in words for people. */
export const processTableSource = fromProc
  ? '/proc (pages that the processes of a server share are counted once)'
  : 'ps (pages that the processes of a server share are counted in each)';

/** Every process there is now, by id. */
export function readProcessTable(): ProcessTable {
  return fromProc ? readProc() : readPs();
}

/** The kernel's unit of time for user space, on every platform Node runs on. */
const ticksPerSecond = 100;

function readProc(): ProcessTable {
  const table = new Map<number, ProcessFacts>();
  for (const name of readdirSync('/proc')) {
    const pid = Number(name);
    const stat = pid > 0 ? readOrEmpty(`/proc/${name}/stat`) : '';
    if (stat !== '') table.set(pid, parseStat(pid, stat));
  }
  return table;
}

/** See proc_pid_stat(5); the fields are counted from the third, because the second may hold spaces. */
function parseStat(pid: number, stat: string): ProcessFacts {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const seconds = (...indexes: number[]) =>
    indexes.reduce((sum, index) => sum + Number(fields[index]), 0) / ticksPerSecond;
  return {
    parent: Number(fields[1]),
    cpuSeconds: seconds(11, 12),
    endedChildrenCpuSeconds: seconds(13, 14),
    memory: () => parseStatus(readOrEmpty(`/proc/${pid}/status`)),
  };
}

function parseStatus(status: string): { ownBytes: number; sharedBytes: number } {
  const bytes = (name: string) =>
    1024 * Number(new RegExp(`^${name}:\\s*(\\d+) kB$`, 'm').exec(status)?.[1] ?? 0);
  return { ownBytes: bytes('RssAnon'), sharedBytes: bytes('RssFile') + bytes('RssShmem') };
}

/** A process may end between two looks. */
function readOrEmpty(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function readPs(): ProcessTable {
  const table = new Map<number, ProcessFacts>();
  const lines = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,rss=,time='], { encoding: 'utf8' });
  for (const line of lines.trim().split('\n')) {
    const [pid, parent, rssKib, time = ''] = line.trim().split(/\s+/);
    table.set(Number(pid), {
      parent: Number(parent),
      cpuSeconds: time.split(':').reduce((sum, part) => sum * 60 + Number(part), 0),
      endedChildrenCpuSeconds: 0,
      memory: () => ({ ownBytes: 1024 * Number(rssKib), sharedBytes: 0 }),
    });
  }
  return table;
}
