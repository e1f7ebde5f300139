import { Cluster, Redis, type RedisOptions } from 'ioredis';
import type { ClusteredRedis, RedisAddress, SingleRedis, WatchedRedis } from '../../urls/redis-url.js';

/** Speaks to one server, to the master that the Sentinels name, or to whichever master of a cluster has the key. */
export type RedisConnection = Redis | Cluster;

/**
 * What becomes of a command while its server cannot be reached: `impatient` ones fail within two seconds, without which an
 * add() would hang while Redis is down or frozen; `patient` ones wait, as blocking reads must.
 */
export type OutageMode = 'fail-fast' | 'blocking';

/** Connects, and keeps connecting; the caller listens to `error`. */
export function connectRedis(address: RedisAddress, mode: OutageMode): RedisConnection {
  const redis = connectTo(address, mode);
  if (redis instanceof Cluster) redis.on('+node', allowManyRefusals);
  else allowManyRefusals(redis);
  return redis;
}

/** ioredis listens once more for the end of the socket with each command that `reconnectOnError` answers: Node would warn of a leak. */
function allowManyRefusals(redis: Redis): void {
  redis.on('connect', () => redis.stream.setMaxListeners(0));
}

function connectTo(address: RedisAddress, mode: OutageMode): RedisConnection {
  switch (address.topology) {
    case 'single':
      return connectSingle(address, mode);
    case 'sentinel':
      return connectWatched(address, mode);
    case 'cluster':
      return connectCluster(address, mode);
  }
}

const connectTimeout = 2000;

/** Reconnects within half a second; BullMQ's own strategy was measured to come back 18 s late. */
const retryStrategy = (attempt: number): number => Math.min(50 * 2 ** attempt, 500) + Math.random() * 50;

/** The longest blocking read on a connection; the longer of BullMQ's own are cut to this. */
export const maxBlockMs = 2000;

/**
 * A connection on which no byte comes for so long, in milliseconds, although an answer is due, is replaced, as when a firewall
 * has forgotten it: TCP itself gives up after a quarter of an hour. It is twice what a command may take or a read may block.
 */
const socketTimeout = 4000;

const tunings = {
  'fail-fast': { maxRetriesPerRequest: 1, commandTimeout: 2000, socketTimeout },
  blocking: { maxRetriesPerRequest: null, socketTimeout },
} as const satisfies Record<OutageMode, RedisOptions>;

/**
 * Once more, elsewhere: who answers like this is a replica. It was the master until now; or it is of a cluster whose masters'
 * connections have all ended, so that ioredis tried any node: replicas do not redirect scripts, but run them and refuse to write.
 */
const reconnectOnError = ({ message }: Error): false | 2 => (message.includes('READONLY') ? 2 : false);

const optionsOf = ({ credentials, tls, database }: SingleRedis | WatchedRedis, mode: OutageMode) => ({
  ...credentials,
  ...(tls && { tls }),
  ...tunings[mode],
  enableOfflineQueue: mode === 'blocking',
  db: database,
  retryStrategy,
  reconnectOnError,
  connectTimeout,
});

const connectSingle = (address: SingleRedis, mode: OutageMode): Redis =>
  new Redis({ ...address.nodes[0], ...optionsOf(address, mode) });

/** A Sentinel that says nothing is passed over. */
const sentinelCommandTimeout = 1000;

function connectWatched(address: WatchedRedis, mode: OutageMode): Redis {
  const { nodes, masterName, sentinelCredentials: known, tls } = address;
  return new Redis({
    ...optionsOf(address, mode),
    sentinels: [...nodes],
    name: masterName,
    ...(known.username && { sentinelUsername: known.username }),
    ...(known.password && { sentinelPassword: known.password }),
    ...(tls && { enableTLSForSentinelMode: true, sentinelTLS: tls }),
    sentinelRetryStrategy: retryStrategy,
    sentinelCommandTimeout,
    // Of a master that fell silent, without which a connection to it would wait for as long as the system does.
    failoverDetector: true,
    sentinelReconnectStrategy: retryStrategy,
  });
}

/**
 * How often the nodes are asked who has which keys. A connection that ends or a redirection says so at once; of a master that
 * fell silent nothing else does.
 */
const slotsRefreshInterval = 2000;

const connectCluster = ({ nodes, credentials, tls }: ClusteredRedis, mode: OutageMode): Cluster =>
  new Cluster([...nodes], {
    redisOptions: {
      ...credentials,
      ...(tls && { tls }),
      ...tunings[mode],
      reconnectOnError,
      connectTimeout,
    },
    enableOfflineQueue: mode === 'blocking',
    // With it connect() would never settle when a part has no master at that moment, and a worker of BullMQ wait for it for ever.
    enableReadyCheck: false,
    clusterRetryStrategy: retryStrategy,
    slotsRefreshInterval,
    // A failover takes longer than the default of sixteen tries, 100 ms apart.
    ...(mode === 'blocking' && { maxRedirections: Number.POSITIVE_INFINITY }),
    // Certificates are for names: an address in the place of one would not match.
    ...(tls && { dnsLookup: (name, callback) => callback(null, name) }),
  });
