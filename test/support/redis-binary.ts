import { execFileSync } from 'node:child_process';

/** A Redis server on the PATH, if there is one. */
export const findRedisBinary = (): string | undefined => ['redis-server', 'valkey-server'].find(isOnPath);

function isOnPath(command: string): boolean {
  try {
    execFileSync(command, ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
