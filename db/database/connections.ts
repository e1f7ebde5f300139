import type { Socket } from 'node:net';
import postgres from 'postgres';
import { withTimeout } from '../../shared/runtime/retry.js';
import type { PostgresAddress } from '../../shared/urls/postgres-url.js';
import { Sockets } from '../patches/postgres-sockets.js';
import { drizzle, type PostgresJsDatabase } from './drizzle.js';

/** Drizzle on postgres.js. It gives arrays of text as arrays, and what is not a column as PostgreSQL writes it. */
export type Drizzle = PostgresJsDatabase<Record<string, never>>;

/** One statement, made with Drizzle. */
export type Query<T> = (db: Drizzle) => PromiseLike<T>;

/** A connection to a database, opened by its queries. */
export interface Connection {
  readonly db: Drizzle;
  /** Takes no new queries, waits up to `graceMs` milliseconds for the running one, then fails it. Never rejects. */
  close(graceMs: number): Promise<void>;
}

interface SessionOptions {
  address: PostgresAddress;
  /** Maximum time to connect, in milliseconds. */
  connectTimeoutMs: number;
  /** PostgreSQL's settings for the session, as texts: postgres.js drops the number 0. */
  session: { application_name: string } & Record<string, string>;
  /** Called at each NOTIFY of a channel that the session listens to. */
  onNotify?: () => void;
  onLost?: () => void;
}

/**
 * Holds as many connections as queries run at once. A connection that is lost, idle for a minute or older than half an
 * hour to an hour (the default of postgres.js) is opened anew: a new one may lead to the server that has taken over.
 */
export class Connections {
  readonly #options: SessionOptions;
  readonly #all: Connection[] = [];
  readonly #free: Connection[] = [];

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  /** Runs the query on the connection that was used last, so that those that are not needed become idle. */
  async run<T>(query: Query<T>): Promise<T> {
    const connection = this.#free.pop() ?? this.#open();
    try {
      return await query(connection.db);
    } finally {
      this.#free.push(connection);
    }
  }

  /** Waits up to `graceMs` milliseconds for the queries that run, then fails them. Never rejects. */
  async close(graceMs: number): Promise<void> {
    await Promise.all(this.#all.map((connection) => connection.close(graceMs)));
  }

  #open(): Connection {
    const connection = open(this.#options, { maxSockets: Infinity, idle_timeout: idleTimeoutSeconds });
    this.#all.push(connection);
    return connection;
  }
}

/** Prepares one connection, whose queries fail once it is lost: what the session holds is lost with it. */
export const openSession = (options: SessionOptions): Connection =>
  open(options, { maxSockets: 1, max_lifetime: null });

/** Firewalls silently forget connections that are idle for some minutes. */
const idleTimeoutSeconds = 60;
const keepAliveSeconds = 30;

interface Limits {
  maxSockets: number;
  idle_timeout?: number;
  max_lifetime?: null;
}

/** The only use of postgres.js. */
function open(options: SessionOptions, { maxSockets, ...limits }: Limits): Connection {
  const { address, connectTimeoutMs, session, onNotify, onLost = () => undefined } = options;
  const sockets = new Sockets(address, maxSockets);
  const settings: postgres.Options<typeof types> & Unlisted = {
    ...address,
    ...limits,
    // With several its list of idle connections grows with each query, and so does the time to search it (decision 8).
    max: 1,
    connect_timeout: connectTimeoutMs / 1000,
    keep_alive: keepAliveSeconds,
    backoff: () => 0,
    // postgres.js would query the types on each connection, and nothing handles the rejection of that query.
    fetch_types: false,
    types,
    connection: { TimeZone: 'UTC', ...session },
    socket: () => sockets.open(),
    onnotice: () => undefined,
    onnotify: onNotify,
    onclose: onLost,
  };
  const client = postgres(settings);
  return {
    db: drizzle(client),
    close: async (graceMs) => {
      await withTimeout(graceMs, client.end()).catch(() => undefined);
      // `end` waits for the server to close the sockets, which a silent one does not do.
      sockets.close();
    },
  };
}

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
