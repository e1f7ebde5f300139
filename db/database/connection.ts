import { connect, type Socket } from 'node:net';
import postgres from 'postgres';
import type { PostgresAddress } from '../../shared/urls/postgres-url.js';
import { drizzle, type PostgresJsDatabase } from './drizzle.js';

/** Drizzle's query builder on postgres.js. Raw SQL returns only arrays of text as arrays, and times as strings. */
export type Drizzle = PostgresJsDatabase<Record<string, never>>;

/** One connection to a database, opened by its first query. It does not reconnect: once lost, its queries fail. */
export interface Connection {
  readonly db: Drizzle;
  /** Waits up to `graceMs` milliseconds for queries, fails the others and ends the connection. Never rejects. */
  close(graceMs: number): Promise<void>;
}

interface ConnectionOptions {
  address: PostgresAddress;
  /** Maximum time to connect, in milliseconds. */
  connectTimeoutMs: number;
  /** Ends the connection when it has been idle for so long, in milliseconds. */
  idleTimeoutMs?: number;
  /** PostgreSQL's settings for the session, as texts: postgres.js drops the number 0. */
  session: { application_name: string } & Record<string, string>;
  /** Called at each NOTIFY of a channel that the session listens to. */
  onNotify?: () => void;
  /** Called, perhaps more than once, when the connection is lost. */
  onLost?: () => void;
}

/** Prepares a connection to the database at the address; the only use of postgres.js. */
export function openConnection(options: ConnectionOptions): Connection {
  const { address, connectTimeoutMs, idleTimeoutMs, session, onNotify, onLost = () => undefined } = options;
  const socket = openSocketOnce(address, onLost);
  const settings: postgres.Options<typeof types> & Unlisted = {
    ...address,
    max: 1,
    connect_timeout: connectTimeoutMs / 1000,
    idle_timeout: idleTimeoutMs && idleTimeoutMs / 1000,
    max_lifetime: null,
    keep_alive: keepAliveSeconds,
    // postgres.js would query the types on each connection, and nothing handles the rejection of that query.
    fetch_types: false,
    types,
    connection: { TimeZone: 'UTC', ...session },
    socket: socket.open,
    onnotice: () => undefined,
    onnotify: onNotify,
    onclose: onLost,
  };
  const client = postgres(settings);
  return {
    db: drizzle(client),
    close: async (graceMs) => {
      await client.end({ timeout: graceMs / 1000 });
      // `end` waits for the server to close the socket, which a silent one does not do.
      socket.close();
    },
  };
}

const keepAliveSeconds = 30;

/** Options of postgres.js that its types lack. */
interface Unlisted {
  socket: () => Socket;
  onnotify: (() => void) | undefined;
}

/** Drizzle's own array parser loses backslashes, so it gets parsed arrays. */
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
 * Opens the socket of a connection, only once: postgres.js would open another when it is lost, and fail the next query with the
 * error that ended the last (https://github.com/porsager/postgres/issues/1223). And where connections are accepted and closed
 * at once, as by the proxy of a dead server, it would reconnect for ever without a pause.
 */
function openSocketOnce({ host, port, ssl }: PostgresAddress, onLost: () => void) {
  let socket: Socket | undefined;
  let used = false;
  return {
    open: (): Socket => {
      if (used) throw Object.assign(new Error('the connection is lost'), { code: 'CONNECTION_CLOSED' });
      used = true;
      socket = host.startsWith('/') ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host);
      socket.once('end', onLost).once('error', onLost);
      if (ssl) refuseWithoutTls(socket);
      // postgres.js takes the server name for TLS from here.
      return Object.assign(socket, { host });
    },
    close: () => {
      used = true;
      socket?.destroy();
    },
  };
}

/** The first byte says whether the server offers TLS; postgres.js starts TLS whatever it says. */
function refuseWithoutTls(socket: Socket): void {
  socket.once('data', ([answer]) => {
    if (answer !== 'S'.charCodeAt(0))
      socket.destroy(Object.assign(new Error('no TLS'), { code: 'TLS_NOT_OFFERED' }));
  });
}
