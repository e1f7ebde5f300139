import { execFileSync } from 'node:child_process';

const isBuilt = 'TESTED_BUILD';

/** vitest's global setup of every project: builds the programs and a client's types, once for a run. */
export function setup(): void {
  if (process.env[isBuilt] !== undefined) return;
  process.env[isBuilt] = 'yes';
  execFileSync('bin/quillgate', ['build'], { stdio: 'inherit' });
  execFileSync(process.execPath, ['dev/client-types.mjs'], { stdio: 'inherit' });
}
