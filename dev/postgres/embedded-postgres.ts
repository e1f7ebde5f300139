import { existsSync, mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { withLock } from '../lock.js';
import { findBinaries } from './binaries.js';
import { ensureCluster, type Installation, roleName } from './cluster.js';
import { createDatabase } from './database.js';
import { startOrAdopt } from './postmaster.js';
import { accountFor, assertWritable, markOf, stopPostmaster, whenEnded } from './postmaster-process.js';

const databaseName = 'quillgate';

/** A running PostgreSQL server of our own. */
export interface EmbeddedPostgres {
  /** `postgres://` URL of the database `quillgate`, with the superuser's credentials. */
  url: string;
  /** Whether the server was already running, started by a process that has died or by another one. */
  adopted: boolean;
  /** Resolves with a message that names its log when the server has ended, whether it was stopped or not. */
  readonly ended: Promise<string>;
  /** Stops the server, adopted or not, and waits until it has ended. May be called again. */
  stop(): Promise<void>;
}

/**
 * Starts PostgreSQL from npm's binaries on 127.0.0.1 with its data in `dataDir/postgres`, or adopts the server that
 * runs there. The server survives a killed caller; the next start adopts it. Any step may be interrupted by kill -9
 * or run by several processes at once. With a port, the data must exist, and are served there again. Throws when this
 * machine cannot run it; the message names `DATABASE_URL`.
 */
export async function startEmbeddedPostgres(options: {
  dataDir: string;
  port?: number | undefined;
}): Promise<EmbeddedPostgres> {
  const { dataDir, port } = options;
  try {
    const home = resolve(dataDir);
    mkdirSync(home, { recursive: true });
    assertWritable([home, join(home, 'postgres.lock'), join(home, 'postgres.log')]);
    return await withLock(join(home, 'postgres.lock'), () => start(home, dataDir, port));
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Error(
      `The embedded PostgreSQL cannot start: ${reason}. Set DATABASE_URL to use a PostgreSQL server of your own.`,
      { cause },
    );
  }
}

/** `dataDir` is the path of `home` as the caller gave it, for messages. */
async function start(home: string, dataDir: string, port: number | undefined): Promise<EmbeddedPostgres> {
  const cluster = join(home, 'postgres');
  if (port !== undefined && !existsSync(cluster)) throw new Error(`${cluster} is gone`);
  const account = accountFor(cluster);
  const installation: Installation = {
    cluster,
    account,
    port,
    log: join(home, 'postgres.log'),
    passwordFile: join(home, 'postgres.password'),
    binaries: await findBinaries({ dataDir: home, account }),
  };
  const password = await ensureCluster(installation);
  const urlOfPort = (port: number) => `postgres://${roleName}:${password}@127.0.0.1:${port}/${databaseName}`;
  const { postmaster, state, launch } = await startOrAdopt(installation, urlOfPort);
  const url = urlOfPort(postmaster.port);
  if (state === 'no database') await createDatabase(url, databaseName);
  const mark = markOf(cluster);
  const log = join(dataDir, 'postgres.log');
  const ended = launch
    ? launch.exit.then((exit) => `PostgreSQL ended unexpectedly (${exit})`)
    : whenEnded(postmaster.pid, mark).then(() => 'PostgreSQL ended unexpectedly');
  return {
    url,
    adopted: launch === undefined,
    ended: ended.then((end) => `${end}; its log is ${log}`),
    stop: () => stopPostmaster(postmaster.pid, mark),
  };
}
