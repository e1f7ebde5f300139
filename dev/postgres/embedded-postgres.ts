import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { withLock } from '../lock.js';
import { accountFor, assertWritable } from './account.js';
import { findBinaries } from './binaries.js';
import { ensureCluster, type Installation, roleName } from './cluster.js';
import { createDatabase } from './database.js';
import { startOrAdopt } from './postmaster.js';
import { markOf, stopPostmaster, whenGone } from './postmaster-process.js';

const databaseName = 'quillgate';

/** A running PostgreSQL server of our own. */
export interface EmbeddedPostgres {
  /** `postgres://` URL of the database `quillgate`, with the superuser's credentials. */
  url: string;
  /** Whether the server was running before, started by a process that has died or by one beside us. */
  adopted: boolean;
  /** Creates another database unless it exists, and gives its URL. */
  createDatabase(name: string): Promise<string>;
  /** Resolves with what there is to say when the server has ended, wanted or not. */
  readonly ended: Promise<string>;
  /** Stops the server, adopted or not, and waits until it is gone. May be called again. */
  stop(): Promise<void>;
}

/**
 * Starts PostgreSQL from npm's binaries on 127.0.0.1 with its data in `dataDir/postgres`, or adopts the server that
 * runs there. The server outlives a killed caller; the next start adopts it. Any step may be interrupted by kill -9
 * or done by several processes at once. Throws, naming `DATABASE_URL` as the way out, when this machine cannot.
 */
export async function startEmbeddedPostgres({ dataDir }: { dataDir: string }): Promise<EmbeddedPostgres> {
  try {
    const home = resolve(dataDir);
    mkdirSync(home, { recursive: true });
    assertWritable([home, join(home, 'postgres.lock'), join(home, 'postgres.log')]);
    return await withLock(join(home, 'postgres.lock'), () => start(home, dataDir));
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Error(
      `The embedded PostgreSQL cannot start: ${reason}. Set DATABASE_URL to use a PostgreSQL server of your own.`,
      { cause },
    );
  }
}

/** `dataDir` is the home as it was named, for messages. */
async function start(home: string, dataDir: string): Promise<EmbeddedPostgres> {
  const cluster = join(home, 'postgres');
  const account = accountFor(cluster);
  const installation: Installation = {
    cluster,
    account,
    log: join(home, 'postgres.log'),
    passwordFile: join(home, 'postgres.password'),
    binaries: await findBinaries({ dataDir: home, account }),
  };
  const password = await ensureCluster(installation);
  const urlOfPort = (port: number) => `postgres://${roleName}:${password}@127.0.0.1:${port}/${databaseName}`;
  const { postmaster, answer, adopted } = await startOrAdopt(installation, urlOfPort);
  const url = urlOfPort(postmaster.port);
  if (answer === 'no database') await createDatabase(url, databaseName);
  const mark = markOf(cluster);
  return {
    url,
    adopted,
    createDatabase: (name) => createDatabase(url, name),
    ended: whenGone(postmaster.pid, mark).then(
      () => `PostgreSQL ended unexpectedly; its log is ${join(dataDir, 'postgres.log')}`,
    ),
    stop: () => stopPostmaster(postmaster.pid, mark),
  };
}
