import { mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { type Place, runToEnd, thisCheckout } from './programs.js';

/** A commit's files, built and ready to run. */
export interface Checkout {
  /** Its root folder. */
  readonly root: string;
  /** The commit and where its packages are from, in words for people. */
  readonly title: string;
}

/**
 * Writes the files of a commit to a new folder in the place, with its packages, and builds it; nothing of the
 * repository changes. Throws when the repository has no such commit, or it cannot be built.
 */
export async function checkOut(name: string, place: Place): Promise<Checkout> {
  const root = join(place.dir, 'checkout');
  const git = (args: readonly string[]) =>
    runToEnd(['git', '-C', thisCheckout, ...args], place, {
      ...process.env,
      GIT_INDEX_FILE: join(place.dir, 'index'),
    });
  const commit = await git([
    'rev-parse',
    '--verify',
    '--quiet',
    '--end-of-options',
    `${name}^{commit}`,
  ]).catch((cause) => {
    throw new Error(`--against: git finds no commit ${name} in this repository`, { cause });
  });
  mkdirSync(root);
  await git(['read-tree', commit.trim()]);
  await git(['checkout-index', '--all', `--prefix=${root}/`]);
  const run = (...command: string[]) => runToEnd(command, { ...place, dir: root });
  const isSame = lockfileOf(root) === lockfileOf(thisCheckout);
  if (isSame) symlinkSync(join(thisCheckout, 'node_modules'), join(root, 'node_modules'));
  else await run('npm', 'ci', '--include=dev', '--no-audit', '--no-fund');
  await run('npm', 'run', '--silent', 'build');
  const packages = isSame ? "the candidate's, because the lockfiles are the same" : 'its own, by npm ci';
  return { root, title: `${commit.slice(0, 12)}, packages: ${packages}` };
}

const lockfileOf = (root: string): string => readFileSync(join(root, 'package-lock.json'), 'utf8');
