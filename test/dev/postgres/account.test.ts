import { chmodSync, chownSync, lchownSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeEach, describe, expect, it } from 'vitest';
import { accountFor, canReach } from '../../../dev/postgres/account.js';
import { startEmbeddedPostgres } from '../../../dev/postgres/embedded-postgres.js';
import { makeFolder } from '../../support/folders.js';
import { run, serverProcesses } from './server-facts.js';
import { spawnStarter } from './starter-process.js';

const stranger = 65534;
const isRoot = process.getuid?.() === 0;
const ourSources = fileURLToPath(new URL('../../../dev/postgres/', import.meta.url));
const canPlayStranger = isRoot && canReach([ourSources, process.execPath], { uid: stranger, gid: stranger });

let home: string;
let dataDir: string;

beforeEach(() => {
  home = makeFolder();
  chmodSync(home, 0o755);
  dataDir = join(home, 'data');
  mkdirSync(dataDir);
});

describe('accountFor', () => {
  it.runIf(isRoot)('never is root, and is the owner where there is a cluster', () => {
    expect(accountFor(dataDir)?.uid).not.toBe(0);
    chownSync(dataDir, 4321, 4322);
    expect(accountFor(dataDir)).toEqual({ uid: 4321, gid: 4322 });
  });
});

describe('startEmbeddedPostgres', () => {
  it.runIf(canPlayStranger)(
    'runs as the user who calls it, and later as that user when root calls it',
    async () => {
      chownSync(dataDir, stranger, stranger);
      const asUser = spawnStarter(dataDir, { uid: stranger });
      const { url = '' } = await asUser.report;
      await run(url, 'CREATE TABLE kept AS SELECT 7 AS n');
      await asUser.stop();

      const asRoot = await startEmbeddedPostgres({ dataDir });
      expect(await run(asRoot.url, 'SELECT n FROM kept')).toEqual([{ n: 7 }]);
      await asRoot.stop();
      expect(statSync(join(dataDir, 'postgres')).uid).toBe(stranger);

      const asUserAgain = spawnStarter(dataDir, { uid: stranger });
      expect(await asUserAgain.report).toMatchObject({ adopted: false });
      await asUserAgain.stop();
      expect(serverProcesses(dataDir)).toEqual([]);
    },
  );

  it.runIf(canPlayStranger)('refuses the data of another user, and names that', async () => {
    const asRoot = await startEmbeddedPostgres({ dataDir });
    await asRoot.stop();
    const asUser = spawnStarter(dataDir, { uid: stranger });
    expect((await asUser.report).failure).toMatch(/belongs to uid \d+: start as that user.*DATABASE_URL/);
    await asUser.ended;
  });

  it.runIf(isRoot)('gives the cluster back to its account when root has made it its own', async () => {
    await (await startEmbeddedPostgres({ dataDir })).stop();
    const cluster = join(dataDir, 'postgres');
    for (const name of readdirSync(cluster, { recursive: true, encoding: 'utf8' })) {
      lchownSync(join(cluster, name), 0, 0);
    }
    chownSync(cluster, 0, 0);
    const again = await startEmbeddedPostgres({ dataDir });
    expect(await run(again.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    await again.stop();
  });
});
