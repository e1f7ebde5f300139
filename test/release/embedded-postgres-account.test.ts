import { chmodSync, chownSync, lchownSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeEach, describe, expect, it } from 'vitest';
import { startEmbeddedPostgres } from '../../dev/postgres/embedded-postgres.js';
import { accountFor, canReach } from '../../dev/postgres/postmaster-process.js';
import { makeFolder } from '../support/folders.js';
import { run, serverProcesses } from './support/server-facts.js';
import { spawnStarter } from './support/starter-process.js';

const stranger = 65534;
const isRoot = process.getuid?.() === 0;
const ourSources = fileURLToPath(new URL('../../dev/postgres/', import.meta.url));
const canPlayStranger = isRoot && canReach([ourSources, process.execPath], { uid: stranger, gid: stranger });

let home: string;
let dataDir: string;

beforeEach(() => {
  home = makeFolder();
  chmodSync(home, 0o755);
  dataDir = join(home, 'data');
  mkdirSync(dataDir);
});

describe('the account of the embedded PostgreSQL', () => {
  it.runIf(isRoot)('-> never is root, and is the owner where there is a cluster', () => {
    expect(accountFor(dataDir)?.uid).not.toBe(0);
    chownSync(dataDir, 4321, 4322);
    expect(accountFor(dataDir)).toEqual({ uid: 4321, gid: 4322 });
  });

  it.runIf(canPlayStranger)('-> is that of the user who starts it, also when root does later', async () => {
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
  });

  it.runIf(canPlayStranger)('that is not the owner of the data -> is refused by name', async () => {
    const asRoot = await startEmbeddedPostgres({ dataDir });
    await asRoot.stop();
    const asUser = spawnStarter(dataDir, { uid: stranger });
    expect((await asUser.report).failure).toMatch(/belongs to uid \d+: start as that user.*DATABASE_URL/);
    await asUser.ended;
  });

  it.runIf(isRoot)('whose cluster root has made its own -> gets it back', async () => {
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
