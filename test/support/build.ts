import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { buildVariable } from './built.js';

/**
 * vitest's global setup of every project: builds the programs, once for a run. It waits only for what is generated from
 * the sources. The rest of the build runs beside the tests, and those that start programs wait for it (`built.ts`).
 */
export async function setup({ vitest }: TestProject): Promise<(() => Promise<void>) | undefined> {
  if (process.env[buildVariable] !== undefined) return undefined;
  const folder = mkdtempSync(join(tmpdir(), 'quillgate-build-'));
  const outcome = join(folder, 'outcome');
  process.env[buildVariable] = outcome;
  const building = spawn(process.execPath, ['dev/build.mjs'], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const built = once(building, 'exit').then(([code]) => {
    if (code !== 0) throw new Error('the build failed, as it says above');
  });
  await Promise.race([once(building, 'message'), built]);
  const ended = built.then(
    () => writeFileSync(outcome, 'built'),
    async (error: unknown) => {
      writeFileSync(outcome, 'failed');
      vitest.state.catchError(error, 'Build Error');
      // The tests may have ended before it.
      process.exitCode = 1;
      await vitest.cancelCurrentRun('test-failure');
    },
  );
  return async () => {
    await ended;
    rmSync(folder, { recursive: true });
  };
}
