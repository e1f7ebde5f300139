import pg from 'pg';
import type { Log } from '../../runtime/log.js';
import { retry } from '../../runtime/retry.js';
import type { PubSub } from '../queue-store.js';

/** PostgreSQL takes less than 8,000 bytes; longer messages are left to the inbox. */
const maxPayloadBytes = 7999;
const reconnectPauseMs = 200;

/** A listener holds the lock of its topic, so whoever can take it knows that nobody is there. */
const lockOf = 'hashtextextended($1, 0)';
const notify = `select pg_notify($1, $2) where not pg_try_advisory_xact_lock_shared(${lockOf})`;
/** Without waiting: a connection of ours that has died may hold it until the server notices, and is counted in its place. */
const announce = `select pg_try_advisory_lock(${lockOf})`;

/** Publish/subscribe by NOTIFY. One connection of the pool listens, and is taken by the first to subscribe. */
export class PostgresPubSub implements PubSub {
  readonly #pool: pg.Pool;
  readonly #log: Log;
  readonly #listeners = new Map<string, (message: string) => void>();
  readonly #closing = new AbortController();
  #client: Promise<pg.PoolClient> | undefined;

  constructor(pool: pg.Pool, log: Log) {
    this.#pool = pool;
    this.#log = log;
  }

  async publish(topic: string, message: string): Promise<number> {
    if (Buffer.byteLength(message) > maxPayloadBytes) return 0;
    // What refuses this refuses the inbox as well, or the inbox takes it.
    const sent = await this.#pool.query(notify, [topic, message]).catch(() => undefined);
    return sent?.rowCount ?? 0;
  }

  async subscribe(topic: string, listener: (message: string) => void): Promise<void> {
    this.#listeners.set(topic, listener);
    this.#client ??= this.#open();
    await listen(await this.#client, topic).catch((err) => this.#log.debug({ err }, 'cannot listen'));
  }

  close(): void {
    this.#closing.abort();
    void this.#client?.then(
      (client) => client.release(true),
      () => undefined,
    );
  }

  /** Opens a connection until that succeeds, and listens there to all topics. */
  #open(): Promise<pg.PoolClient> {
    const { signal } = this.#closing;
    return retry(() => this.#connect(), { pauseMs: reconnectPauseMs, signal, unref: true });
  }

  async #connect(): Promise<pg.PoolClient> {
    const client = await this.#pool.connect();
    client.on('notification', ({ channel, payload = '' }) => this.#listeners.get(channel)?.(payload));
    const onLost = () => {
      if (this.#closing.signal.aborted) return;
      client.release(true);
      this.#client = this.#open();
      this.#client.catch(() => undefined);
    };
    try {
      for (const topic of this.#listeners.keys()) await listen(client, topic);
    } catch (error) {
      client.release(true);
      throw error;
    }
    client.once('error', onLost);
    return client;
  }
}

async function listen(client: pg.PoolClient, topic: string): Promise<void> {
  await client.query(`listen ${pg.escapeIdentifier(topic)}`);
  await client.query(announce, [topic]);
}
