import { mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { Lifecycle } from '../../../shared/runtime/lifecycle.js';
import { thisCheckout } from '../programs.js';
import { runToEnd } from '../run-to-end.js';

/** A commit's files, built and ready to run. */
export interface Checkout {
  /** Its root folder. */
  readonly root: string;
  /** The commit, shortened. */
  readonly commit: string;
  /** Where its packages are from, in words for people. */
  readonly packages: string;
}

interface Repository {
  lifecycle: Lifecycle;
  /** Root folder of the checkout whose repository has the commit. */
  repository?: string;
}

interface CheckoutDeps extends Repository {
  /** Folder that it goes to. */
  dir: string;
  onStep(step: string): void;
}

/** The full name of the commit that somebody calls so. Throws when there is no such one in the repository. */
export async function findCommit(name: string, repository: Repository): Promise<string> {
  const wanted = ['rev-parse', '--verify', '--quiet', '--end-of-options', `${name}^{commit}`];
  try {
    return (await git(wanted, repository)).trim();
  } catch (cause) {
    throw new Error(`--against: git finds no commit ${name} in this repository`, { cause });
  }
}

/** Writes the files of a commit to a folder of its own, with its packages, and builds it; nothing of the repository changes. */
export async function checkOut(commit: string, deps: CheckoutDeps): Promise<Checkout> {
  const { dir, lifecycle, repository = thisCheckout, onStep } = deps;
  const root = join(dir, 'checkout');
  mkdirSync(root);
  const index = { GIT_INDEX_FILE: join(dir, 'index') };
  await git(['read-tree', commit], deps, index);
  await git(['checkout-index', '--all', `--prefix=${root}/`], deps, index);
  const run = (command: string, ...args: string[]) => {
    onStep([command, ...args].join(' '));
    return runToEnd(command, args, { cwd: root, environment: process.env, lifecycle });
  };
  const isSame = lockfileOf(root) === lockfileOf(repository);
  if (isSame) symlinkSync(join(repository, 'node_modules'), join(root, 'node_modules'));
  else await run('npm', 'ci', '--include=dev', '--no-audit', '--no-fund');
  await run('npm', 'run', '--silent', 'build');
  const packages = isSame ? "the candidate's, because the lockfiles are the same" : 'its own, by npm ci';
  return { root, commit: commit.slice(0, 12), packages };
}

const lockfileOf = (root: string): string => readFileSync(join(root, 'package-lock.json'), 'utf8');

const git = (
  args: readonly string[],
  { lifecycle, repository = thisCheckout }: Repository,
  variables: NodeJS.ProcessEnv = {},
): Promise<string> =>
  runToEnd('git', args, { cwd: repository, environment: { ...process.env, ...variables }, lifecycle });
