import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

/** A postmaster (the server's first process) that runs on the cluster. */
export interface Postmaster {
  pid: number;
  port: number;
  /** Whether it says that it accepts connections. */
  ready: boolean;
}

const unreadableAfterMs = 2_000;
const pollMs = 10;
const watchMs = 500;

/**
 * The mark on the command line of the postmaster of the cluster at this path. A pid file alone may name a recycled
 * process id, and a path would be wrong after the project was moved or copied while the server runs: the folder's
 * inode is not.
 */
export function markOf(cluster: string): string {
  return `cluster_name=quillgate-${statSync(cluster).ino}`;
}

/** The postmaster that runs on the cluster, according to the cluster's pid file and the process it names. */
export function findPostmaster(cluster: string): Postmaster | undefined {
  const lines = readPidFile(cluster)?.split('\n') ?? [];
  const pid = Number(lines[0]);
  if (!pid || !isMarked(pid, markOf(cluster))) return undefined;
  return { pid, port: Number(lines[3]), ready: lines[7]?.trim() === 'ready' };
}

/**
 * Removes a pid file that would keep Postgres from starting although no postmaster of the cluster runs: its process
 * id is now another program's or a zombie's, or its writer was killed before it wrote. Should children of a killed
 * postmaster be left, Postgres still notices them by their shared memory.
 */
export function discardMisleadingPidFile(cluster: string): void {
  const path = join(cluster, 'postmaster.pid');
  const pid = Number(readPidFile(cluster)?.split('\n')[0]);
  const age = Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
  if (pid ? sendSignal(pid, 0) : age > unreadableAfterMs) rmSync(path, { force: true });
}

/** Ends the marked postmaster, gently at first, and waits until it is gone. Does nothing when it is gone already. */
export async function stopPostmaster(pid: number, mark: string): Promise<void> {
  const steps = [
    { signal: 'SIGINT', timeoutMs: 5_000 }, // fast: rolls back, writes a checkpoint
    { signal: 'SIGQUIT', timeoutMs: 7_000 }, // immediate: kills its children after 5 s; the next start recovers
    { signal: 'SIGKILL', timeoutMs: 3_000 }, // for a stopped (SIGSTOP) process, which heeds nothing else
  ] as const;
  for (const { signal, timeoutMs } of steps) {
    if (!isMarked(pid, mark)) return;
    sendSignal(pid, signal);
    if (await isGoneWithin(timeoutMs, pid, mark)) return;
  }
  throw new Error(`PostgreSQL's process ${pid} does not end`);
}

/** Resolves when the marked postmaster has ended. It need not be a child of ours, so it is looked for; keeps no process alive. */
export async function whenGone(pid: number, mark: string): Promise<void> {
  while (isMarked(pid, mark)) await delay(watchMs, undefined, { ref: false });
}

async function isGoneWithin(timeoutMs: number, pid: number, mark: string): Promise<boolean> {
  const giveUpAt = Date.now() + timeoutMs;
  while (isMarked(pid, mark)) {
    if (Date.now() > giveUpAt) return false;
    await delay(pollMs);
  }
  return true;
}

function readPidFile(cluster: string): string | undefined {
  try {
    return readFileSync(join(cluster, 'postmaster.pid'), 'utf8');
  } catch {
    return undefined;
  }
}

/** Whether the process runs with the mark on its command line; a zombie has no command line any more. */
function isMarked(pid: number, mark: string): boolean {
  try {
    const commandLine = existsSync('/proc/self/cmdline')
      ? readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
      : execFileSync('ps', ['-ww', '-o', 'args=', '-p', String(pid)], { encoding: 'utf8' })
          .trim()
          .split(' ');
    return commandLine.includes(mark);
  } catch {
    return false;
  }
}

/** False when the process is gone or beyond our reach. Signal 0 only asks. */
function sendSignal(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}
