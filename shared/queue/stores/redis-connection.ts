import { Cluster, Redis, type RedisOptions } from 'ioredis';
import { givenFields } from '../../json/json.js';
import type { Log } from '../../runtime/log.js';
import type { ClusteredRedis, RedisAddress, SingleRedis, WatchedRedis } from '../../urls/redis-url.js';
import { PatientConnector, PatientSentinelConnector } from '../patches/connectors.js';
import { writeOncePerTurn } from '../patches/redis-writes.js';
import type { PubSub } from '../queue-store.js';

/** A connection to one server, to the master that the Sentinels name, or to the masters of a cluster. */
export type RedisConnection = Redis | Cluster;

/**
 * The fate of a command while its server is unreachable: `fail-fast` ones fail within two seconds, or an add()
 * would hang while Redis is down or frozen; `blocking` ones wait, as blocking reads must. A `listening` connection is
 * as a blocking one, but leaves it to its user to subscribe again. `bulk` ones are large, and have more time.
 */
export type OutageMode = 'fail-fast' | 'bulk' | 'blocking' | 'listening';

/**
 * Connects, and reconnects without end; the caller listens to `error`. A connection that receives no byte for
 * `socketTimeout` milliseconds while an answer is due is replaced.
 */
export function connectRedis(
  address: RedisAddress,
  mode: OutageMode,
  { socketTimeout = maxSilenceMs }: { socketTimeout?: number } = {},
): RedisConnection {
  const tuning = { ...tunings[mode], ...connecting, socketTimeout };
  if (address.topology === 'cluster')
    return connectCluster(address, mode, tuning).on('+node', prepareSockets);
  const redis =
    address.topology === 'single'
      ? connectSingle(address, mode, tuning)
      : connectWatched(address, mode, tuning);
  prepareSockets(redis);
  return redis;
}

/** Each reconnect opens another socket. */
function prepareSockets(redis: Redis): void {
  redis.on('connect', () => {
    // ioredis adds a listener to the socket for each command that `reconnectOnError` retries: Node would warn of a
    // leak.
    redis.stream.setMaxListeners(0);
    writeOncePerTurn(redis.stream);
  });
}

const connectTimeout = 2000;

/** Reconnects within half a second; BullMQ's own strategy was measured to reconnect 18 s late. */
const retryStrategy = (attempt: number): number => Math.min(50 * 2 ** attempt, 500) + Math.random() * 50;

/** The longest blocking read on a connection; BullMQ's longer ones are cut to this. */
export const maxBlockMs = 2000;

/** TCP itself gives up after a quarter of an hour. It is twice what a command may take or a read may block. */
const maxSilenceMs = 4000;

const tunings = {
  'fail-fast': { maxRetriesPerRequest: 1, commandTimeout: 2000 },
  bulk: { maxRetriesPerRequest: 1, commandTimeout: 8000 },
  blocking: { maxRetriesPerRequest: null },
  listening: { maxRetriesPerRequest: null, autoResubscribe: false },
} as const satisfies Record<OutageMode, RedisOptions>;

/**
 * Reconnects and sends the command again when a replica answered. It was the master until now; or all connections to
 * the masters of a cluster have ended, so that ioredis tried any node: replicas run scripts instead of redirecting
 * them, and refuse to write.
 */
const reconnectOnError = ({ message }: Error): false | 2 => (message.includes('READONLY') ? 2 : false);
const connecting = { connectTimeout, reconnectOnError, Connector: PatientConnector };

type Tuning = (typeof tunings)[OutageMode] & typeof connecting & { readonly socketTimeout: number };

const optionsOf = (
  { credentials, tls, database }: SingleRedis | WatchedRedis,
  mode: OutageMode,
  tuning: Tuning,
) => ({
  ...credentials,
  ...(tls && { tls }),
  ...tuning,
  enableOfflineQueue: mode !== 'fail-fast',
  db: database,
  retryStrategy,
});

const connectSingle = (address: SingleRedis, mode: OutageMode, tuning: Tuning): Redis =>
  new Redis({ ...address.nodes[0], ...optionsOf(address, mode, tuning) });

/** A Sentinel that does not answer in time is skipped. */
const sentinelCommandTimeout = 1000;

function connectWatched(address: WatchedRedis, mode: OutageMode, tuning: Tuning): Redis {
  const { nodes, masterName, sentinelCredentials: known, tls } = address;
  return new Redis({
    ...optionsOf(address, mode, tuning),
    sentinels: [...nodes],
    name: masterName,
    ...givenFields({ sentinelUsername: known.username, sentinelPassword: known.password }),
    ...(tls && { enableTLSForSentinelMode: true, sentinelTLS: tls }),
    sentinelRetryStrategy: retryStrategy,
    sentinelCommandTimeout,
    // For a master that fell silent: a connection to it would otherwise wait until TCP gives up.
    failoverDetector: true,
    Connector: PatientSentinelConnector,
    sentinelReconnectStrategy: retryStrategy,
  });
}

/** How often the nodes are asked who has which keys: nothing else shows that a master fell silent. */
const slotsRefreshInterval = 2000;

const connectCluster = (
  { nodes, credentials, tls }: ClusteredRedis,
  mode: OutageMode,
  tuning: Tuning,
): Cluster =>
  new Cluster([...nodes], {
    redisOptions: {
      ...credentials,
      ...(tls && { tls }),
      ...tuning,
    },
    enableOfflineQueue: mode !== 'fail-fast',
    // With it connect() would never settle while a shard has no master, and a worker of BullMQ would wait for ever.
    enableReadyCheck: false,
    clusterRetryStrategy: retryStrategy,
    slotsRefreshInterval,
    // A failover takes longer than the default of sixteen tries, 100 ms apart.
    ...(mode === 'blocking' && { maxRedirections: Number.POSITIVE_INFINITY }),
    // Certificates are for names: an address would not match.
    ...(tls && { dnsLookup: (name, callback) => callback(null, name) }),
  });

interface PubSubConnections {
  publisher: Pick<RedisConnection, 'publish'>;
  connect: (mode: 'listening') => RedisConnection;
  log: Log;
}

/** How often the listening connection is tested: idle, it would not notice that it has died without a word. */
const pingIntervalMs = 1000;

/** Publish/subscribe of one Redis server. Its own connection listens, and is opened by the first to subscribe. */
export class RedisPubSub implements PubSub {
  readonly #connections: PubSubConnections;
  readonly #channelOf: (topic: string) => string;
  readonly #listeners = new Map<string, (message: string) => void>();
  #subscriber: RedisConnection | undefined;
  #pinging: NodeJS.Timeout | undefined;
  #isRefused = false;

  constructor(connections: PubSubConnections, channelOf: (topic: string) => string) {
    this.#connections = connections;
    this.#channelOf = channelOf;
  }

  async publish(topic: string, message: string): Promise<number> {
    const { publisher } = this.#connections;
    return publisher.publish(this.#channelOf(topic), message).catch((error) => this.#onRefusal(error));
  }

  async subscribe(topic: string, listener: (message: string) => void): Promise<boolean> {
    const channel = this.#channelOf(topic);
    this.#listeners.set(channel, listener);
    this.#subscriber ??= this.#open();
    const channels = await this.#subscriber.subscribe(channel).catch((error) => this.#onRefusal(error));
    return channels !== 0;
  }

  close(): void {
    clearInterval(this.#pinging);
    this.#subscriber?.disconnect();
  }

  #open(): RedisConnection {
    const subscriber = this.#connections.connect('listening');
    subscriber.on('message', (channel, message) => this.#listeners.get(channel)?.(message));
    // ioredis does not handle the rejection when its own attempt is refused, which would end the process.
    subscriber.on('ready', () => {
      const channels = [...this.#listeners.keys()];
      subscriber.subscribe(...channels).catch((error) => this.#onRefusal(error));
    });
    const ping = () => subscriber.status === 'ready' && subscriber.ping().catch(() => undefined);
    this.#pinging = setInterval(ping, pingIntervalMs);
    return subscriber;
  }

  /** An ACL without the channels is a reason to be slower, not to fail. */
  #onRefusal(error: unknown): 0 {
    const isDenied = error instanceof Error && error.message.startsWith('NOPERM');
    const level = isDenied && !this.#isRefused ? 'warn' : 'debug';
    if (isDenied) this.#isRefused = true;
    this.#connections.log[level]({ err: error }, 'Redis refuses publish/subscribe');
    return 0;
  }
}
