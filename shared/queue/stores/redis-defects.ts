import { once } from 'node:events';
import { connect } from 'node:tls';
import { Cluster, type Redis } from 'ioredis';
import type { RedisAddress, RedisNode, RedisTls } from '../../urls/redis-url.js';
import type { StoreClock } from './clock-skew.js';
import type { RedisConnection } from './redis-connection.js';

/** A defect of any master that waiting does not mend. Throws, with a code if it is known, while one is unreachable. */
export async function findRedisMisconfiguration(
  connection: RedisConnection,
  address: RedisAddress,
  clock: StoreClock,
): Promise<string | undefined> {
  try {
    await untilSettled(connection);
    const defects = (await mastersOf(connection)).map((master) => findDefect(master, clock));
    return (await Promise.all(defects)).find((defect) => defect !== undefined);
  } catch (error) {
    throw (await findTlsError(address)) ?? error;
  }
}

/** A connection rejects commands until it is established. Throws the reason when it cannot be. */
async function untilSettled(connection: RedisConnection): Promise<void> {
  if (connection.status !== 'connecting' && connection.status !== 'connect') return;
  const settled = new AbortController();
  const either = ['ready', 'close'].map((event) => once(connection, event, { signal: settled.signal }));
  await Promise.race(either).finally(() => settled.abort());
}

async function mastersOf(connection: RedisConnection): Promise<Redis[]> {
  if (!(connection instanceof Cluster)) return [connection];
  const facts = String(await connection.cluster('INFO'));
  if (connection.status !== 'ready' || !facts.includes('cluster_state:ok'))
    throw Object.assign(new Error('a part of the cluster has no master'), { code: 'CLUSTERDOWN' });
  return connection.nodes('master');
}

async function findDefect(redis: Redis, clock: StoreClock): Promise<string | undefined> {
  return (await clock.sync(() => timeOf(redis))) ?? (await findEviction(redis));
}

async function timeOf(redis: Redis): Promise<number> {
  const [seconds, microseconds] = await redis.time();
  return Number(seconds) * 1000 + Number(microseconds) / 1000;
}

async function findEviction(redis: Redis): Promise<string | undefined> {
  const facts = await redis.info('memory');
  const policy = /^maxmemory_policy:(\w[\w-]*)/m.exec(facts)?.[1];
  if (policy === undefined || policy === 'noeviction') return undefined;
  return `Redis may evict jobs: set maxmemory-policy to noeviction (it is ${policy})`;
}

const handshakeTimeoutMs = 1000;

/** The TLS error of one of the servers that the address names, which ioredis does not report. */
async function findTlsError({ tls, nodes }: RedisAddress): Promise<Error | undefined> {
  if (tls === undefined) return undefined;
  const errors = await Promise.all(nodes.map((node) => shakeHands(node, tls)));
  return errors.find((error) => error !== undefined);
}

const shakeHands = ({ host, port }: RedisNode, tls: RedisTls): Promise<Error | undefined> =>
  new Promise((resolve) => {
    const socket = connect({ ...tls, host, port, timeout: handshakeTimeoutMs });
    const end = (error?: Error) => {
      socket.destroy();
      resolve(error);
    };
    socket.once('secureConnect', end).once('timeout', end).on('error', end);
  });
