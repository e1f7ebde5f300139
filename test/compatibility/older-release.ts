import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { withLock } from '../../dev/lock.js';

/** The release before this one, built and ready to run; or why it cannot be had here. */
export type OlderRelease =
  | { readonly launcher: string; readonly missing?: undefined }
  | { readonly launcher?: undefined; readonly missing: string };

const run = promisify(execFile);

/** The commit of the release before this one; a release moves it. */
export const olderCommit = readFileSync('test/compatibility/older-release', 'utf8').trim();

/**
 * Takes the release from the history of this repository and builds it with the packages that are installed here; once,
 * however many ask. Rejects when there is a history and it cannot be built.
 */
export async function buildOlderRelease(): Promise<OlderRelease> {
  if (!(await isInHistory()))
    return { missing: `the history of this repository, where there is one, does not hold ${olderCommit}` };
  const folder = resolve('test-results', `older-${olderCommit}`);
  mkdirSync('test-results', { recursive: true });
  await withLock(`${folder}.lock`, async () => {
    if (!existsSync(resolve(folder, 'complete'))) await build(folder);
  });
  return { launcher: resolve(folder, 'bin/quillgate') };
}

/** Whether the history is here, which it is not where the code was unpacked from an archive. */
export const isInHistory = (): Promise<boolean> =>
  run('git', ['cat-file', '-e', `${olderCommit}^{commit}`]).then(
    () => true,
    () => false,
  );

async function build(folder: string): Promise<void> {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  const archive = `${folder}.tar`;
  await run('git', ['archive', '--output', archive, olderCommit]);
  await run('tar', ['-xf', archive, '-C', folder]);
  rmSync(archive);
  symlinkSync(resolve('node_modules'), resolve(folder, 'node_modules'));
  declareAbsentPackages(folder);
  await run(process.execPath, ['dev/build.mjs'], { cwd: folder });
  writeFileSync(resolve(folder, 'complete'), '');
}

/** Packages that went since then only have to be known by name: what needs them is not run here. */
function declareAbsentPackages(folder: string): void {
  const { dependencies }: { dependencies: object } = JSON.parse(
    readFileSync(resolve(folder, 'package.json'), 'utf8'),
  );
  const absent = Object.keys(dependencies).filter((name) => !existsSync(resolve('node_modules', name)));
  const declared = absent.map((name) => `declare module '${name}';\n`);
  writeFileSync(resolve(folder, 'shared/absent-packages.d.ts'), declared.join(''));
}
