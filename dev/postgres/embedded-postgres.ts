import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { withLock } from '../lock.js';
import { accountFor, assertWritable } from './account.js';
import { findBinaries } from './binaries.js';
import { ensureCluster, type Installation, roleName } from './cluster.js';
import { createDatabase } from './database.js';
import { startOrAdopt } from './postmaster.js';
import { markOf, stopPostmaster, whenEnded } from './postmaster-process.js';

const databaseName = 'quillgate';

/** A running PostgreSQL server of our own. */
export interface EmbeddedPostgres {
  /** `postgres://` URL of the database `quillgate`, with the superuser's credentials. */
  url: string;
  /** Whether the server was already running, started by a process that has died or by another one. */
  adopted: boolean;
  createDatabase(name: string): Promise<string>;
  /** Resolves with a message when the server has ended, whether it was stopped or not. */
  readonly ended: Promise<string>;
  /** Stops the server, adopted or not, and waits until it has ended. May be called again. */
  stop(): Promise<void>;
}

/**
 * Starts PostgreSQL from npm's binaries on 127.0.0.1 with its data in `dataDir/postgres`, or adopts the server that
 * runs there. The server survives a killed caller; the next start adopts it. Any step may be interrupted by kill -9
 * or run by several processes at once. Throws when this machine cannot run it; the message names `DATABASE_URL`.
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

/** `dataDir` is the path of `home` as the caller gave it, for messages. */
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
  const { postmaster, state, adopted } = await startOrAdopt(installation, urlOfPort);
  const url = urlOfPort(postmaster.port);
  if (state === 'no database') await createDatabase(url, databaseName);
  const mark = markOf(cluster);
  return {
    url,
    adopted,
    createDatabase: (name) => createDatabase(url, name),
    ended: whenEnded(postmaster.pid, mark).then(
      () => `PostgreSQL ended unexpectedly; its log is ${join(dataDir, 'postgres.log')}`,
    ),
    stop: () => stopPostmaster(postmaster.pid, mark),
  };
}
