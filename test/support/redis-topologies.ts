import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '../../dev/free-port.js';
import type { RedisAddress } from '../../shared/urls/redis-url.js';
import { type RedisCertificates, type RedisProcess, startRedisProcess } from './redis-process.js';

/** Several Redis servers, of which one may fail. */
export interface RedisTopology {
  /** For `REDIS_URL`. */
  readonly url: string;
  /** The servers, without Sentinels. */
  readonly servers: readonly RedisProcess[];
  /** The master that currently has this key. */
  masterOf(key: string): Promise<RedisProcess>;
  /** The replica of this master. */
  replicaOf(master: RedisProcess): Promise<RedisProcess>;
  stop(): Promise<void>;
}

interface TopologyOptions {
  /** Makes all connections use TLS. */
  certificates?: RedisCertificates;
}

/** Starts a topology of each kind. */
export const startTopology: Record<
  Exclude<RedisAddress['topology'], 'single'>,
  (options?: TopologyOptions) => Promise<RedisTopology>
> = { cluster: startCluster, sentinel: startWatched };

/** Contains characters that have to be percent-encoded in a URL. */
const password = 'canary-of-redis:1/6?0@%2';
const sentinelPassword = 'canary-of-the-sentinels-6931471805';

/** A server that does not answer for this long counts as down. Short, because no test has a busy network. */
const downAfterMs = 1000;

/** Three masters, each with a third of the keys and a replica. */
async function startCluster({ certificates }: TopologyOptions = {}): Promise<RedisTopology> {
  const servers = await startAll(
    Array.from({ length: 6 }, async () => {
      let busPort = 0;
      const lines = async () => {
        busPort = await freePort();
        return [
          'cluster-enabled yes',
          `cluster-port ${busPort}`,
          `cluster-node-timeout ${downAfterMs}`,
          'repl-diskless-sync-delay 0',
          ...(certificates ? ['tls-cluster yes'] : []),
        ];
      };
      const server = await startRedisProcess({ password, certificates, lines });
      return { busPort, ...server };
    }),
  );
  try {
    await joinCluster(servers);
  } catch (error) {
    await stopAll(servers);
    throw error;
  }
  const nodes = servers.map(({ port }) => `127.0.0.1:${port}`).slice(0, 3);
  return {
    url: `redis${certificates ? 's' : ''}-cluster://:${encodeURIComponent(password)}@${nodes.join(',')}${trust(certificates)}`,
    servers,
    replicaOf: (master) => findReplica(servers, master),
    masterOf: async (key) => {
      const slot = Number(await firstOf(servers).command('CLUSTER', 'KEYSLOT', key));
      const parts = (await firstOf(servers).command('CLUSTER', 'SLOTS')) as [
        number,
        number,
        [string, number],
      ][];
      const part = parts.find(([first, last]) => first <= slot && slot <= last);
      return serverAt(servers, part?.[2][1]);
    },
    stop: () => stopAll(servers),
  };
}

interface ClusterServer extends RedisProcess {
  readonly busPort: number;
}

/** As `redis-cli --cluster create` does, without its pauses. */
async function joinCluster(servers: readonly ClusterServer[]): Promise<void> {
  const first = firstOf(servers);
  const masters = servers.slice(0, 3);
  const replicas = servers.slice(3);
  for (const [n, server] of servers.entries())
    await server.command('CLUSTER', 'SET-CONFIG-EPOCH', String(n + 1));
  for (const { port, busPort } of servers.slice(1))
    await first.command('CLUSTER', 'MEET', '127.0.0.1', String(port), String(busPort));
  const share = Math.ceil(16_384 / masters.length);
  for (const [n, server] of masters.entries()) {
    const last = Math.min((n + 1) * share, 16_384) - 1;
    await server.command('CLUSTER', 'ADDSLOTSRANGE', String(n * share), String(last));
  }
  for (const [n, replica] of replicas.entries()) {
    const id = String(await masters[n]?.command('CLUSTER', 'MYID'));
    await until(() => replica.command('CLUSTER', 'REPLICATE', id).then(Boolean, () => false));
  }
  for (const server of servers)
    await until(async () => {
      const facts = String(await server.command('CLUSTER', 'INFO'));
      const nodes = String(await server.command('CLUSTER', 'NODES'));
      const known = nodes.split('\n').filter((line) => / (myself,)?(master|slave) /.test(line)).length;
      return facts.includes('cluster_state:ok') && known === servers.length;
    });
  for (const replica of replicas) await isSynchronised(replica);
}

/** A master and its replica, watched by three Sentinels, of which two have to agree. */
async function startWatched({ certificates }: TopologyOptions = {}): Promise<RedisTopology> {
  const master = await startRedisProcess({
    password,
    certificates,
    lines: ['repl-diskless-sync-delay 0'],
  });
  const replica = await startRedisProcess({
    password,
    certificates,
    lines: ['repl-diskless-sync-delay 0', `replicaof 127.0.0.1 ${master.port}`],
  });
  const servers = [master, replica];
  await isSynchronised(replica);
  const lines = [
    `sentinel monitor mymaster 127.0.0.1 ${master.port} 2`,
    `sentinel auth-pass mymaster ${password}`,
    `sentinel down-after-milliseconds mymaster ${downAfterMs}`,
    'sentinel failover-timeout mymaster 3000',
    `sentinel sentinel-pass ${sentinelPassword}`,
  ];
  const sentinels = await startAll(
    Array.from({ length: 3 }, () =>
      startRedisProcess({ password: sentinelPassword, certificates, lines, isSentinel: true }),
    ),
  );
  const seesAll = async (sentinel: RedisProcess) => {
    const facts = (await sentinel.command('SENTINEL', 'MASTER', 'mymaster')) as string[];
    const fact = (name: string) => facts[facts.indexOf(name) + 1];
    return fact('num-other-sentinels') === '2' && fact('num-slaves') === '1';
  };
  for (const sentinel of sentinels) await until(() => seesAll(sentinel));
  const nodes = sentinels.map(({ port }) => `127.0.0.1:${port}`);
  const scheme = `redis${certificates ? 's' : ''}-sentinel`;
  const query = `${trust(certificates) || '?'}&sentinel_password=${sentinelPassword}`;
  return {
    url: `${scheme}://:${encodeURIComponent(password)}@${nodes.join(',')}/mymaster${query}`,
    servers,
    replicaOf: (one) => findReplica(servers, one),
    masterOf: async () => {
      const answer = await firstOf(sentinels).command('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', 'mymaster');
      return serverAt(servers, Number((answer as string[])[1]));
    },
    stop: () => stopAll([...sentinels, ...servers]),
  };
}

const trust = (certificates: RedisCertificates | undefined): string =>
  certificates ? `?sslrootcert=${encodeURIComponent(certificates.authority)}` : '';

function serverAt<Server extends RedisProcess>(servers: readonly Server[], port: number | undefined): Server {
  const server = servers.find((one) => one.port === port);
  if (server === undefined) throw new Error('no such server');
  return server;
}

function firstOf<Server>([first]: readonly Server[]): Server {
  if (first === undefined) throw new Error('no server');
  return first;
}

async function findReplica(servers: readonly RedisProcess[], master: RedisProcess): Promise<RedisProcess> {
  for (const server of servers) {
    const facts = String(await server.command('INFO', 'replication'));
    if (facts.includes(`master_port:${master.port}\r`)) return server;
  }
  throw new Error('nobody would take over');
}

/** Resolves when the replica has all data of its master. */
export const isSynchronised = (replica: RedisProcess): Promise<void> =>
  until(async () => String(await replica.command('INFO', 'replication')).includes('master_link_status:up'));

/** All or none. */
async function startAll<Server extends RedisProcess>(starting: Promise<Server>[]): Promise<Server[]> {
  const results = await Promise.allSettled(starting);
  const started = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
  const failed = results.find((result) => result.status === 'rejected');
  if (failed === undefined) return started;
  await stopAll(started);
  throw failed.reason;
}

const stopAll = async (servers: readonly RedisProcess[]): Promise<void> =>
  void (await Promise.all(servers.map((server) => server.stop())));

const startMs = 20_000;

async function until(check: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + startMs;
  while (!(await check())) {
    if (performance.now() > end) throw new Error('the servers do not find each other');
    await delay(20);
  }
}
