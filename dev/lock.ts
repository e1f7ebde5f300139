import { DatabaseSync } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';

const timeoutMs = 600_000;
const pollMs = 20;
const sqliteBusy = 5;

/**
 * Runs the task while holding the lock of the file `path`, waiting for its holder. Throws when that takes
 * more than ten minutes: on a busy machine a build takes one or two.
 *
 * The file is an empty SQLite database locked exclusively: the kernel gives such a lock up when its holder dies,
 * so there is no stale lock to detect, no recycled process id to mistake for the holder, no takeover to race for.
 */
export async function withLock<T>(path: string, task: () => Promise<T>): Promise<T> {
  const lock = new DatabaseSync(path);
  try {
    const giveUpAt = Date.now() + timeoutMs;
    while (!tryLock(lock)) {
      if (Date.now() > giveUpAt) throw new Error(`another process has held ${path} for ten minutes`);
      await delay(pollMs);
    }
    return await task();
  } finally {
    lock.close();
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
