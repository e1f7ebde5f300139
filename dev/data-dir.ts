import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ConfigError } from '../shared/config/config.js';
import { withLock } from './lock.js';

const timeoutMs = 1000;

/** A data folder that no other start uses. */
export interface DataDir {
  readonly logs: string;
  release(): void;
}

/**
 * Creates the data folder if it is missing and locks it against other starts, because the one that stops first would
 * stop the other's PostgreSQL too. The lock ends with the process, even when it is killed. Throws `ConfigError`.
 */
export async function occupyDataDir(path: string): Promise<DataDir> {
  const logs = join(path, 'logs');
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  try {
    mkdirSync(logs, { recursive: true });
    const occupied = await Promise.race([
      lockUntil(released, join(path, 'start.lock')),
      delay(timeoutMs, false),
    ]);
    if (occupied) return { logs, release };
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'failed';
    throw new ConfigError([`DATA_DIR: cannot write in ${path} (${code})`]);
  }
  throw new ConfigError([
    `DATA_DIR: npm start runs in ${path} already; stop it, or set another folder and ports`,
  ]);
}

/** Resolves when it holds the lock, and releases that when the promise resolves. */
const lockUntil = (released: Promise<void>, path: string): Promise<true> =>
  new Promise((resolve, reject) => {
    const hold = () => {
      resolve(true);
      return released;
    };
    withLock(path, hold).catch(reject);
  });
