import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigError } from '../shared/config/config.js';
import { takeLock } from './lock.js';

const timeoutMs = 1000;

/**
 * Creates the data folder if it is missing and locks it against other starts, because the one that stops first would
 * stop the other's PostgreSQL too. The lock ends with the process, even when it is killed. Throws `ConfigError`.
 */
export async function occupyDataDir(path: string): Promise<{ logs: string; release(): void }> {
  const logs = join(path, 'logs');
  try {
    mkdirSync(logs, { recursive: true });
    const lock = await takeLock(join(path, 'start.lock'), timeoutMs);
    if (lock) return { logs, release: () => lock.close() };
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'failed';
    throw new ConfigError([`DATA_DIR: cannot write in ${path} (${code})`]);
  }
  throw new ConfigError([
    `DATA_DIR: npm start runs in ${path} already; stop it, or set another folder and ports`,
  ]);
}
