import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';

// It starts drizzle-kit, which takes seconds of processor: not for each `npm test`.
it('the schema in db/schema.ts -> needs no other migrations than there are', async () => {
  const root = fileURLToPath(new URL('../../', import.meta.url));
  const copy = mkdtempSync(join(tmpdir(), 'quillgate-test-'));
  onTestFinished(() => rmSync(copy, { recursive: true, force: true }));
  cpSync(join(root, 'db', 'migrations'), copy, { recursive: true });
  const before = readdirSync(copy, { recursive: true }).sort();

  // drizzle-kit puts `./` in front of every folder.
  const out = relative(root, copy);
  const generate = ['generate', '--dialect', 'postgresql', '--schema', 'db/schema.ts', '--out', out];
  const { stdout } = await promisify(execFile)('npx', ['drizzle-kit', ...generate], { cwd: root });

  expect(stdout).toContain('No schema changes');
  expect(readdirSync(copy, { recursive: true }).sort()).toEqual(before);
});
