import { DatabaseSync } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';

/** On a busy machine a build takes one or two minutes. */
const timeoutMs = 600_000;
const pollMs = 20;
const sqliteBusy = 5;

/** Runs the task while holding the lock of the file `path`. Throws when its holder keeps it for ten minutes. */
export async function withLock<T>(path: string, task: () => Promise<T>): Promise<T> {
  using lock = await takeLock(path, timeoutMs);
  if (lock === undefined) throw new Error(`another process has held ${path} for ten minutes`);
  return await task();
}

/**
 * Takes the lock of the file `path`, and gives what releases it; undefined when its holder keeps it for so long.
 *
 * The file is an empty SQLite database locked exclusively: the kernel gives such a lock up when its holder dies,
 * so there is no stale lock to detect, no recycled process id to mistake for the holder, no takeover to race for.
 */
export async function takeLock(path: string, withinMs: number): Promise<DatabaseSync | undefined> {
  const lock = new DatabaseSync(path);
  const giveUpAt = Date.now() + withinMs;
  try {
    while (!tryLock(lock)) {
      if (Date.now() > giveUpAt) return void lock.close();
      await delay(pollMs);
    }
    return lock;
  } catch (error) {
    lock.close();
    throw error;
  }
}

function tryLock(lock: DatabaseSync): boolean {
  try {
    lock.exec('BEGIN EXCLUSIVE');
    return true;
  } catch (error) {
    if (error instanceof Error && 'errcode' in error && error.errcode === sqliteBusy) return false;
    throw error;
  }
}
