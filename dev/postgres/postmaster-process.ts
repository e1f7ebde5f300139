import { execFileSync, spawnSync } from 'node:child_process';
import {
  accessSync,
  constants,
  existsSync,
  lchownSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

/** A running postmaster (the server's first process) of the cluster. */
export interface Postmaster {
  pid: number;
  port: number;
  ready: boolean;
}

const unreadableAfterMs = 2_000;
const pollMs = 10;
const watchMs = 500;

/**
 * The argument that marks the postmaster of the cluster at this path. The process id in a pid file alone may have been
 * reused, and a path would be wrong after the project was moved or copied while the server runs; the folder's inode
 * stays the same.
 */
export function markOf(cluster: string): string {
  return `cluster_name=quillgate-${statSync(cluster).ino}`;
}

/** The cluster's running postmaster, according to its pid file and the command line of that process. */
export function findPostmaster(cluster: string): Postmaster | undefined {
  const lines = readPidFile(cluster)?.split('\n') ?? [];
  const pid = Number(lines[0]);
  if (!pid || !isMarked(pid, markOf(cluster))) return undefined;
  return { pid, port: Number(lines[3]), ready: lines[7]?.trim() === 'ready' };
}

/**
 * Removes a pid file that would prevent a start although no postmaster of the cluster runs: its process id now belongs
 * to another program or a zombie, or the process that created the file was killed before it wrote the id. PostgreSQL
 * still detects the remaining children of a killed postmaster by their shared memory.
 */
export function removeStalePidFile(cluster: string): void {
  const path = join(cluster, 'postmaster.pid');
  const pid = Number(readPidFile(cluster)?.split('\n')[0]);
  const age = Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
  if (pid ? sendSignal(pid, 0) : age > unreadableAfterMs) rmSync(path, { force: true });
}

/** Stops the marked postmaster, gracefully at first, and waits until it has ended. Does nothing when it already has. */
export async function stopPostmaster(pid: number, mark: string): Promise<void> {
  const steps = [
    { signal: 'SIGINT', timeoutMs: 5_000 }, // fast: rolls back, writes a checkpoint
    { signal: 'SIGQUIT', timeoutMs: 7_000 }, // immediate: kills its children after 5 s; the next start recovers
    { signal: 'SIGKILL', timeoutMs: 3_000 }, // for a stopped (SIGSTOP) process, which handles no other signal
  ] as const;
  for (const { signal, timeoutMs } of steps) {
    if (!isMarked(pid, mark)) return;
    sendSignal(pid, signal);
    if (await endsWithin(timeoutMs, pid, mark)) return;
  }
  throw new Error(`PostgreSQL's process ${pid} does not end`);
}

/** Resolves when the marked postmaster has ended. It may not be a child process, so it is polled. */
export async function whenEnded(pid: number, mark: string): Promise<void> {
  while (isMarked(pid, mark)) await delay(watchMs, undefined, { ref: false });
}

async function endsWithin(timeoutMs: number, pid: number, mark: string): Promise<boolean> {
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

/** Whether the process runs with the mark on its command line; that of a zombie is empty. */
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

/** False when the process has ended or is another user's. Signal 0 only checks. */
function sendSignal(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}

/** The user that PostgreSQL's programs run as, as options of `spawn`; undefined means the current user. */
export type Account = { uid: number; gid: number } | undefined;

const nobody = 65534;

/**
 * Chooses the account for the cluster at this path, which may not exist yet. PostgreSQL refuses to run as root, so
 * root runs it as the cluster's owner, or as `postgres` or the account `nobody`. Throws if another user owns it.
 */
export function accountFor(cluster: string): Account {
  const us = process.getuid?.();
  const owner = statSync(cluster, { throwIfNoEntry: false });
  if (us !== 0) {
    if (owner === undefined || owner.uid === us) return undefined;
    throw new Error(`${cluster} belongs to uid ${owner.uid}: start as that user or as root, or delete it`);
  }
  if (owner !== undefined && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid };
  const account = serviceAccount();
  if (owner !== undefined) changeOwnerOfAll(cluster, account);
  return account;
}

function serviceAccount(): { uid: number; gid: number } {
  const entry = /^postgres:[^:]*:([1-9]\d*):(\d+):/m.exec(readFileSync('/etc/passwd', 'utf8'));
  return entry ? { uid: Number(entry[1]), gid: Number(entry[2]) } : { uid: nobody, gid: nobody };
}

function changeOwnerOfAll(root: string, { uid, gid }: { uid: number; gid: number }): void {
  for (const entry of readdirSync(root, { recursive: true, encoding: 'utf8' })) {
    lchownSync(join(root, entry), uid, gid);
  }
  lchownSync(root, uid, gid);
}

/** Throws when one of these paths exists and is not writable, as after a start by another user. */
export function assertWritable(paths: readonly string[]): void {
  for (const path of paths) {
    const owner = statSync(path, { throwIfNoEntry: false });
    if (owner === undefined) continue;
    try {
      accessSync(path, constants.W_OK);
    } catch (cause) {
      const message = `cannot write ${path}, it belongs to uid ${owner.uid}: start as that user or as root`;
      throw new Error(message, { cause });
    }
  }
}

/** Makes the account the owner of the file or folder at this path; does nothing for the current user. */
export function changeOwner(path: string, account: Account): void {
  if (account) lchownSync(path, account.uid, account.gid);
}

/**
 * Whether the account can open these paths (for a folder: list and enter it). It is tried as that account, because
 * modes alone say nothing of access lists, groups and parent folders.
 */
export function canReach(paths: readonly string[], account: Account): boolean {
  if (account === undefined) return true;
  const script = 'for path; do test -r "$path" && { test ! -d "$path" || test -x "$path"; } || exit 1; done';
  const { status, error } = spawnSync('/bin/sh', ['-c', script, 'sh', ...paths], {
    ...account,
    stdio: 'ignore',
  });
  if (error) throw new Error(`cannot run a program as uid ${account.uid}`, { cause: error });
  return status === 0;
}

/**
 * The path of the cluster's folder for a program of the account that is started inside it. Below a folder that only
 * root may enter, the account cannot use the real path. But Node changes the working directory while it is still root,
 * and `/proc/self/cwd` leads there past the parent folders. All of PostgreSQL's processes stay in that directory, so
 * the path remains valid through crash recovery, parallel workers and reloads.
 */
export function pathFromInside(cluster: string, account: Account): string {
  if (canReach([cluster], account)) return cluster;
  if (existsSync('/proc/self/cwd')) return '/proc/self/cwd';
  throw new Error(`uid ${account?.uid} cannot reach ${cluster}`);
}
