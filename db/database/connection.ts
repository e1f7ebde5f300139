import { connect, type Socket } from 'node:net';
import postgres from 'postgres';
import type { PostgresAddress } from '../../shared/urls/postgres-url.js';
import { drizzle, type PostgresJsDatabase } from './drizzle.js';

/** Drizzle's query builder on postgres.js. In raw SQL only arrays of text come as arrays, and times are strings. */
export type Drizzle = PostgresJsDatabase<Record<string, never>>;

/** One connection to a database, opened by its first query. Once lost it stays so, and queries on it fail. */
export interface Connection {
  readonly db: Drizzle;
  /** Lets queries end for so long, in milliseconds, fails the others, and ends the connection. Never rejects. */
  close(graceMs: number): Promise<void>;
}

interface ConnectionOptions {
  address: PostgresAddress;
  /** How long opening it may take, in milliseconds. */
  connectTimeoutMs: number;
  /** Ends it when it had nothing to do for so long, in milliseconds. */
  idleTimeoutMs?: number;
  /** PostgreSQL's settings for the session, as texts: postgres.js leaves out a number that is 0. */
  session: { application_name: string } & Record<string, string>;
  /** Called at each NOTIFY of a channel that the session listens to. */
  onNotify?: () => void;
  /** Called, perhaps more than once, when the connection is lost. */
  onLost?: () => void;
}

/** Prepares a connection to the database at the address: everything of postgres.js that we use. */
export function openConnection(options: ConnectionOptions): Connection {
  const { address, connectTimeoutMs, idleTimeoutMs, session, onNotify, onLost = () => undefined } = options;
  const line = openLine(address, onLost);
  const settings: postgres.Options<typeof types> & Unlisted = {
    ...address,
    max: 1,
    connect_timeout: connectTimeoutMs / 1000,
    idle_timeout: idleTimeoutMs && idleTimeoutMs / 1000,
    max_lifetime: null,
    keep_alive: keepAliveSeconds,
    // Asked for on each new connection, and where that query fails its rejection is handled by nobody.
    fetch_types: false,
    types,
    connection: { TimeZone: 'UTC', ...session },
    socket: line.open,
    onnotice: () => undefined,
    onnotify: onNotify,
    onclose: onLost,
  };
  const client = postgres(settings);
  return {
    db: drizzle(client),
    close: async (graceMs) => {
      await client.end({ timeout: graceMs / 1000 });
      // It has said goodbye and waits for the server's, which a silent one does not send.
      line.close();
    },
  };
}

const keepAliveSeconds = 30;

/** Options of postgres.js that its types lack. */
interface Unlisted {
  socket: () => Socket;
  onnotify: (() => void) | undefined;
}

/** Drizzle's own reading of arrays loses backslashes, so it gets arrays that have been read. */
const types = {
  textArray: {
    to: 1009,
    from: [1009],
    serialize: (texts: readonly string[] | string) =>
      typeof texts === 'string' ? texts : `{${texts.map(quote).join(',')}}`,
    parse: (text: string): string[] =>
      [...text.matchAll(/"((?:[^"\\]|\\.)*)"|[^{},]+/gs)].map(
        ([bare, quoted]) => quoted?.replace(/\\(.)/gs, '$1') ?? bare,
      ),
  },
};

const quote = (text: string): string => `"${text.replace(/["\\]/g, '\\$&')}"`;

/**
 * The socket of a connection. There is only ever one: postgres.js would open another when it is lost, and fail the
 * next query with the error that ended the last (https://github.com/porsager/postgres/issues/1223); and dial for ever,
 * without a pause, where connections are accepted and closed at once, as proxies of a dead server do.
 */
function openLine({ host, port, ssl }: PostgresAddress, onLost: () => void) {
  let line: Socket | undefined;
  let used = false;
  return {
    open: (): Socket => {
      if (used) throw Object.assign(new Error('the connection is lost'), { code: 'CONNECTION_CLOSED' });
      used = true;
      line = host.startsWith('/') ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host);
      line.once('end', onLost).once('error', onLost);
      if (ssl) refuseWithoutTls(line);
      // postgres.js looks here for the name to tell the server.
      return Object.assign(line, { host });
    },
    close: () => {
      used = true;
      line?.destroy();
    },
  };
}

/** The first byte is the server's answer to whether it has TLS; postgres.js begins with TLS whatever it is. */
function refuseWithoutTls(line: Socket): void {
  line.once('data', ([answer]) => {
    if (answer !== 'S'.charCodeAt(0))
      line.destroy(Object.assign(new Error('no TLS'), { code: 'TLS_NOT_OFFERED' }));
  });
}
