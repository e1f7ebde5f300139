import type { ConnectionOptions } from 'node:tls';
import { givenFields } from '../json/json.js';
import {
  authorities,
  decodePart,
  ownCertificate,
  parametersOf,
  readPort,
  refuseParameters,
  StoreUrlError,
} from './store-url-parts.js';

/**
 * The only parser of `REDIS_URL`:
 *
 *     redis://[user:password@]host[:port][/database]
 *     redis-sentinel://[user:password@]sentinel[:port][,sentinel…]/master[/database]
 *     redis-cluster://[user:password@]node[:port][,node…]
 *
 * `rediss` in place of `redis` encrypts every connection, to the Sentinels too. User and password are those of the
 * Redis servers; `sentinel_user` and `sentinel_password` are those of the Sentinels, if they have their own. `prefix`
 * begins every key, so that several deployments can share a cluster, which has no databases. For `sslmode` and
 * certificates see `redisTlsOf`.
 */

export interface RedisNode {
  readonly host: string;
  readonly port: number;
}

interface RedisCredentials {
  readonly username?: string;
  readonly password?: string;
}

interface Shared {
  /** The server, the Sentinels, or some of the cluster. */
  readonly nodes: readonly RedisNode[];
  readonly credentials: RedisCredentials;
  readonly tls: RedisTls | undefined;
  /** The beginning of every key, unless it is ours to choose. */
  readonly prefix: string | undefined;
}

/** One server. */
export interface SingleRedis extends Shared {
  readonly topology: 'single';
  readonly nodes: readonly [RedisNode];
  readonly database: number;
}

/** A master with replicas, found by its name through the Sentinels. */
export interface WatchedRedis extends Shared {
  readonly topology: 'sentinel';
  readonly masterName: string;
  readonly database: number;
  readonly sentinelCredentials: RedisCredentials;
}

/** Several masters with a part of the keys each; the nodes given here name the others. */
export interface ClusteredRedis extends Shared {
  readonly topology: 'cluster';
}

/** Where Redis is and how to talk to it. */
export type RedisAddress = SingleRedis | WatchedRedis | ClusteredRedis;

/** Parses one of the URLs above and reads the certificates that it names. Throws `StoreUrlError`. */
export function parseRedisUrl(text: string): RedisAddress {
  const { topology, isEncrypted, authority, path, search } = split(text);
  const parameters = parametersOf(search);
  refuseParameters([...parameters.keys()].filter((name) => !supported[topology].has(name)));
  const { hosts, ...credentials } = readAuthority(authority);
  const shared = {
    credentials,
    tls: redisTlsOf(parameters, isEncrypted),
    prefix: readPrefix(parameters.get('prefix')),
  };
  switch (topology) {
    case 'single':
      return { topology, nodes: [only(hosts.map(readNode(6379)))], database: readDatabase(path), ...shared };
    case 'sentinel':
      return {
        topology,
        nodes: hosts.map(readNode(26_379)),
        ...readMaster(path),
        sentinelCredentials: credentialsOf(
          parameters.get('sentinel_user'),
          parameters.get('sentinel_password'),
        ),
        ...shared,
      };
    case 'cluster':
      // /0 is accepted: it is the only database of a cluster.
      if (readDatabase(path) !== 0)
        throw new StoreUrlError('must name no database: a cluster has none but 0');
      return { topology, nodes: hosts.map(readNode(6379)), ...shared };
  }
}

const everywhere = ['prefix', 'sslmode', 'sslrootcert', 'sslcert', 'sslkey'];
const supported: Record<RedisAddress['topology'], ReadonlySet<string>> = {
  single: new Set(everywhere),
  sentinel: new Set([...everywhere, 'sentinel_user', 'sentinel_password']),
  cluster: new Set(everywhere),
};

const topologies = new Map([
  ['', 'single'],
  ['-sentinel', 'sentinel'],
  ['-cluster', 'cluster'],
] as const);
const form =
  /^redis(?<s>s?)(?<kind>|-sentinel|-cluster):\/\/(?<authority>[^/?#]*)(?<path>[^?#]*)(?<search>[^#]*)/;

/** `URL` cannot do this: it allows one host only. */
function split(text: string) {
  const { s, kind, authority = '', path = '', search = '' } = form.exec(text)?.groups ?? {};
  const topology = topologies.get(kind as '' | '-sentinel' | '-cluster');
  if (topology === undefined || /[\s\p{Cc}]/u.test(text))
    throw new StoreUrlError(
      'must be a redis://, redis-sentinel:// or redis-cluster:// URL, or one with rediss for TLS',
    );
  // The path can be the end of a password then, so it may not be shown.
  if (/[@#]/.test(path + search) || text.includes('#'))
    throw new StoreUrlError('must have the characters @ / ? # percent-encoded in user and password');
  return { topology, isEncrypted: s === 's', authority, path, search };
}

function readAuthority(authority: string): RedisCredentials & { hosts: string[] } {
  const end = authority.lastIndexOf('@');
  const [user = '', ...password] = authority.slice(0, Math.max(0, end)).split(':');
  return {
    ...credentialsOf(decodePart(user), decodePart(password.join(':'))),
    hosts: authority.slice(end + 1).split(','),
  };
}

const credentialsOf = (username?: string, password?: string): RedisCredentials =>
  givenFields({ username: username || undefined, password: password || undefined });

const readNode =
  (defaultPort: number) =>
  (text: string): RedisNode => {
    const { address, name, port } =
      /^(?:\[(?<address>[\da-f:.]+)\]|(?<name>[\w.-]+))(?::(?<port>\d+))?$/i.exec(text)?.groups ?? {};
    const host = address ?? name;
    if (host === undefined) throw new StoreUrlError('must have hosts of the form name or name:port');
    return { host, port: port === undefined ? defaultPort : readPort(port) };
  };

function only([node, ...others]: RedisNode[]): RedisNode {
  if (node === undefined || others.length > 0)
    throw new StoreUrlError('must name one host alone, or be a redis-sentinel:// or redis-cluster:// URL');
  return node;
}

function readMaster(path: string): Pick<WatchedRedis, 'masterName' | 'database'> {
  const [, name = '', ...database] = path.split('/');
  if (name === '') throw new StoreUrlError('must name the master after the Sentinels: /mymaster');
  return { masterName: decodePart(name), database: readDatabase(`/${database.join('/')}`) };
}

function readDatabase(path: string): number {
  if (/^\/?$/.test(path)) return 0;
  if (/^\/\d{1,5}$/.test(path)) return Number(path.slice(1));
  throw new StoreUrlError('must have as database a number');
}

/** No braces, by which a cluster chooses the slot of a key. */
function readPrefix(prefix: string | undefined): string | undefined {
  if (prefix === undefined || /^[\w.-]{1,64}$/.test(prefix)) return prefix;
  throw new StoreUrlError('must have as prefix up to 64 letters, digits and . _ -');
}

/** The TLS options of a Redis URL, by PostgreSQL's parameters; certificates are verified in full by default. */
export type RedisTls = Pick<
  ConnectionOptions,
  'ca' | 'cert' | 'key' | 'rejectUnauthorized' | 'checkServerIdentity'
>;

const modes = ['verify-full', 'verify-ca', 'no-verify'] as const;

/** The options for `tls.connect`, undefined for no TLS. Reads the named files. Throws `StoreUrlError`. */
function redisTlsOf(parameters: ReadonlyMap<string, string>, isEncrypted: boolean): RedisTls | undefined {
  if (!isEncrypted) {
    if (['sslmode', 'sslrootcert', 'sslcert', 'sslkey'].some((name) => parameters.has(name)))
      throw new StoreUrlError(
        'must begin with rediss for TLS: without it sslmode and certificates mean nothing',
      );
    return undefined;
  }
  const mode = modes.find((name) => name === (parameters.get('sslmode') ?? 'verify-full'));
  if (mode === undefined) throw new StoreUrlError(`must have as sslmode one of ${modes.join(', ')}`);
  return {
    ...authorities(parameters.get('sslrootcert')),
    ...ownCertificate(parameters),
    rejectUnauthorized: mode !== 'no-verify',
    // Servers given by address often have a certificate for a name.
    ...(mode === 'verify-ca' && { checkServerIdentity: () => undefined }),
  };
}
