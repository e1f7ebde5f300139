import { resolve } from 'node:path';
import type { TestProject } from 'vitest/node';
import { createTemplates, runServer, runServerVariable, startPostgresServer } from './postgres-server.js';
import { findRedisBinary } from './redis-binary.js';
import { startRedisProcess } from './redis-process.js';

/** The projects whose tests need a Redis; `npm test` needs none. */
const withRedis = ['faults', 'release'];
const redisVariable = 'TEST_REDIS_URL';

/** vitest's global setup of each project that needs servers. The first one starts each, and stops it at the end. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  // The tests start more than a hundred programs from the same code.
  process.env.NODE_COMPILE_CACHE ??= resolve('test-results/compile-cache');
  const stops: (() => Promise<void>)[] = [];
  if (runServer() === undefined) {
    const { url, stop } = await startPostgresServer();
    stops.push(stop);
    await createTemplates(url);
    process.env[runServerVariable] = url;
  }
  const needsRedis = withRedis.includes(project.name);
  if (needsRedis && process.env[redisVariable] === undefined) {
    if (findRedisBinary() === undefined)
      throw new Error(`The project ${project.name} needs a redis-server or valkey-server on the PATH.`);
    const redis = await startRedisProcess({ lines: ['databases 1024', 'appendonly no'] });
    stops.push(redis.stop);
    process.env[redisVariable] = `redis://127.0.0.1:${redis.port}`;
  }
  project.provide('servers', {
    postgres: runServer() ?? '',
    redis: needsRedis ? process.env[redisVariable] : undefined,
  });
  return async () => {
    for (const stop of stops.reverse()) await stop();
  };
}
