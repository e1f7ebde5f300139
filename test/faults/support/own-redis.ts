import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { inject } from 'vitest';
import { freePort } from '../../../dev/free-port.js';
import { findRedisBinary } from '../../support/redis-binary.js';
import type { StoreServer } from '../../support/stores.js';
import type { Books } from './books.js';

/** A Redis server that one case alone uses, with an append-only file, so that it can be done anything to. */
export interface OwnRedis {
  /** To start a deployment on; the database is everybody's. */
  readonly store: StoreServer;
  /** Kills it without a word. */
  kill(): Promise<void>;
  /** Starts it again at the same port with the same data, and waits until it answers. */
  start(): Promise<void>;
  configure(parameter: string, value: string): Promise<void>;
  /** Sends a command and gives its answer. */
  command(name: string, ...args: string[]): Promise<unknown>;
}

/** Starts a server from the PATH; it ends with the case. */
export async function startOwnRedis(books: Books): Promise<OwnRedis> {
  const binary = findRedisBinary();
  if (binary === undefined) throw new Error('no redis-server or valkey-server on the PATH');
  const dir = mkdtempSync(join(tmpdir(), 'quillgate-redis-'));
  const port = await freePort();
  const url = `redis://127.0.0.1:${port}`;
  let child: ChildProcess;

  const command = async (name: string, ...args: string[]): Promise<unknown> => {
    const redis = new Redis(url, { retryStrategy: () => 20 });
    redis.on('error', () => undefined);
    try {
      return await redis.call(name, ...args);
    } finally {
      redis.disconnect();
    }
  };
  const start = async () => {
    child = spawn(binary, [...options, '--port', String(port), '--dir', dir], { stdio: 'ignore' });
    // While it reads its file it answers with an error.
    for (;;) if (await command('PING').then(Boolean, () => false)) return;
  };
  const kill = async () => {
    const ended = once(child, 'exit');
    if (child.kill('SIGKILL')) await ended;
  };
  await start();
  books.release(async () => {
    await kill();
    rmSync(dir, { recursive: true, force: true });
  });
  return {
    store: { kind: 'redis', url, databaseUrl: inject('store').databaseUrl },
    kill,
    start,
    configure: async (parameter, value) => void (await command('CONFIG', 'SET', parameter, value)),
    command,
  };
}

const options = ['--bind', '127.0.0.1', '--save', '', '--appendonly', 'yes', '--appendfsync', 'everysec'];
