import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { freePort } from '../../dev/free-port.js';
import { retry } from '../../shared/runtime/retry.js';
import { findRedisBinary } from './redis-binary.js';

/** A Redis server or Sentinel that a test may kill, freeze and restart. */
export interface RedisProcess {
  readonly port: number;
  /** Sends a command and returns its reply; rejects when the server is down. */
  command(name: string, ...args: string[]): Promise<unknown>;
  /** Kills it with SIGKILL. */
  kill(): Promise<void>;
  /** Restarts it on the same port with the same data, and waits until it answers. */
  start(): Promise<void>;
  /** Stops it from answering, while its connections stay open. */
  freeze(): void;
  thaw(): void;
  /** Stops it and removes its data. */
  stop(): Promise<void>;
}

/** Paths of certificates; with them the server accepts only TLS. */
export interface RedisCertificates {
  readonly authority: string;
  readonly certificate: string;
  readonly key: string;
}

export interface RedisProcessOptions {
  /** Required of clients and of the other servers. */
  password?: string;
  certificates?: RedisCertificates | undefined;
  /** Lines of its configuration; a function is called again when it has to try another port. */
  lines?: readonly string[] | (() => Promise<readonly string[]>);
  isSentinel?: boolean;
}

/** Starts a server on a free port of the loopback address; on another one if that was taken meanwhile. */
export const startRedisProcess = (options: RedisProcessOptions = {}): Promise<RedisProcess> =>
  retry(() => startOnFreePort(options), { pauseMs: 1, maxTries: 3 });

async function startOnFreePort(options: RedisProcessOptions): Promise<RedisProcess> {
  const binary = findRedisBinary();
  if (binary === undefined) throw new Error('no redis-server or valkey-server on the PATH');
  const dir = mkdtempSync(join(tmpdir(), 'quillgate-redis-'));
  const port = await freePort();
  const file = join(dir, 'redis.conf');
  writeFileSync(file, configuration(options, await linesOf(options), { port, dir }).join('\n'));
  let child: ChildProcess;

  const command = async (name: string, ...args: string[]): Promise<unknown> => {
    const redis = connect(options, port);
    try {
      return await redis.call(name, ...args);
    } finally {
      redis.disconnect();
    }
  };
  const start = async () => {
    child = spawn(binary, [file, ...(options.isSentinel ? ['--sentinel'] : [])], { stdio: 'ignore' });
    // While it loads its data it answers with an error.
    while (!(await command('PING').then(Boolean, () => false))) {
      if (child.exitCode !== null) throw new Error(`${binary} ended at once`);
    }
  };
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  };
  await start();
  return {
    port,
    command,
    kill,
    start,
    freeze: () => void child.kill('SIGSTOP'),
    thaw: () => void child.kill('SIGCONT'),
    stop: async () => {
      await kill();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

const linesOf = async ({ lines = [] }: RedisProcessOptions): Promise<readonly string[]> =>
  typeof lines === 'function' ? lines() : lines;

function configuration(
  { password, certificates, isSentinel = false }: RedisProcessOptions,
  lines: readonly string[],
  { port, dir }: { port: number; dir: string },
): string[] {
  return [
    'bind 127.0.0.1',
    `dir ${dir}`,
    ...(certificates ? tlsLines(certificates, port) : [`port ${port}`]),
    ...(isSentinel ? [] : ['save ""', 'appendonly yes', 'appendfsync everysec']),
    ...(password ? [`requirepass ${password}`] : []),
    ...(password && !isSentinel ? [`masterauth ${password}`] : []),
    ...lines,
  ];
}

const tlsLines = ({ authority, certificate, key }: RedisCertificates, port: number): string[] => [
  'port 0',
  `tls-port ${port}`,
  `tls-ca-cert-file ${authority}`,
  `tls-cert-file ${certificate}`,
  `tls-key-file ${key}`,
  'tls-auth-clients no',
  'tls-replication yes',
];

function connect({ password, certificates }: RedisProcessOptions, port: number): Redis {
  const redis = new Redis({
    port,
    host: '127.0.0.1',
    ...(password && { password }),
    ...(certificates && { tls: { rejectUnauthorized: false } }),
    enableReadyCheck: false,
    retryStrategy: (attempt) => (attempt > 100 ? null : 20),
  });
  redis.on('error', () => undefined);
  return redis;
}
