import { execFileSync } from 'node:child_process';

const isBuilt = 'TESTED_BUILD';

/** vitest's global setup of every project: builds once for a run what the tests load and start, and a client's types. */
export function setup(): void {
  if (process.env[isBuilt] !== undefined) return;
  process.env[isBuilt] = 'yes';
  execFileSync('bin/quillgate', ['build'], { stdio: 'inherit' });
  execFileSync(process.execPath, ['dev/client-types.mjs'], { stdio: 'inherit' });
}
