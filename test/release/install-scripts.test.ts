import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';

interface Manifest {
  allowScripts: Record<string, boolean>;
}
interface Lockfile {
  packages: Record<string, { hasInstallScript?: boolean }>;
}
const read = <T>(file: string): T => JSON.parse(readFileSync(file, 'utf8')) as T;

describe('npm ci', () => {
  it('-> finds of every package with an install script whether it may run', () => {
    const { packages } = read<Lockfile>('package-lock.json');
    const withScript = Object.keys(packages)
      .filter((path) => path !== '' && packages[path]?.hasInstallScript)
      .map((path) => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length));
    expect(withScript).toContain('@scarf/scarf');
    expect(Object.keys(read<Manifest>('package.json').allowScripts)).toEqual(
      expect.arrayContaining(withScript),
    );
  });

  // npm before 11 does not know allowScripts, and runs the script.
  it('that runs every script -> reports no installation', async () => {
    const { stdout: tree } = await promisify(execFile)('npm', ['ls', '@scarf/scarf', '--json', '--long']);
    const verdict = await new Promise<unknown>((resolve, reject) =>
      scarf().processDependencyTreeOutput(resolve, reject)(null, tree),
    ).catch((error: Error) => error.message);
    expect(verdict).toBe('Scarf has been disabled via a package.json in the dependency chain.');
  });
});

interface Scarf {
  /** Resolves with what would be reported, given what `npm ls` prints; rejects with why nothing is. */
  processDependencyTreeOutput(
    resolve: (reported: object) => void,
    reject: (reason: Error) => void,
  ): (error: Error | null, tree: string) => void;
}

const scarf = (): Scarf => createRequire(import.meta.url)('@scarf/scarf') as Scarf;
