import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { accountFor } from '../../dev/postgres/account.js';
import { findBinaries } from '../../dev/postgres/binaries.js';
import { startEmbeddedPostgres } from '../../dev/postgres/embedded-postgres.js';
import { findPostmaster } from '../../dev/postgres/postmaster-process.js';
import type { Lifecycle } from '../../shared/runtime/lifecycle.js';
import type { RunningStore, StoreChoice } from './store.js';

/** The PostgreSQL of `npm start`, with a new cluster. Throws when npm has not installed it for this platform. */
export async function findEmbeddedStore(dir: string): Promise<StoreChoice> {
  const account = accountFor(join(dir, 'postgres'));
  const binaries = await findBinaries({ dataDir: dir, account });
  const version = execFileSync(join(binaries, 'bin', 'postgres'), ['--version'], { encoding: 'utf8' });
  return {
    name: 'embedded',
    servedBy: `${version.trim()} from npm's binaries, fsync on, data below ${dir}`,
    open,
  };
}

async function open(lifecycle: Lifecycle, dir: string): Promise<RunningStore> {
  const { url, pid } = await startDatabase(lifecycle, dir);
  return { variables: { DATABASE_URL: url }, pid };
}

/** Starts a PostgreSQL with a new cluster in `dir`. */
export async function startDatabase(
  lifecycle: Lifecycle,
  dir: string,
): Promise<{ url: string; pid: number | undefined }> {
  const starting = startEmbeddedPostgres({ dataDir: dir });
  // Registered before it runs: it outlives its starter, so a Ctrl-C in the meantime must stop it too.
  lifecycle.opened('postgres', starting, async () => (await starting).stop());
  const { url } = await starting;
  return { url, pid: findPostmaster(join(dir, 'postgres'))?.pid };
}
