import { readFileSync } from 'node:fs';
import { PostgreSqlContainer, type StartedPostgreSqlContainer } from '@testcontainers/postgresql';
import { RedisContainer } from '@testcontainers/redis';
import type { TestProject } from 'vitest/node';
import { createTemplates } from '../../support/postgres-server.js';

// Its image is a further one to pull; the label of each container has CI remove what a killed run leaves.
process.env.TESTCONTAINERS_RYUK_DISABLED ??= 'true';
const labels = { quillgate: 'test' };

/** The image of a store: the one that `STORE_IMAGES` names (`postgres:17 redis:7.2`), else that of the compose file. */
export function composeImage(name: 'postgres' | 'redis'): string {
  const named = (process.env.STORE_IMAGES ?? '').split(' ');
  const compose = readFileSync('docker-compose.yml', 'utf8').match(/(?<=image: )\S+/g) ?? [];
  const image = [...named, ...compose].find((one) => one.startsWith(`${name}:`));
  if (image === undefined) throw new Error(`docker-compose.yml has no image of ${name}`);
  return image;
}

/** A PostgreSQL with as many connections as the embedded one of the other projects. */
export const startPostgresContainer = (image: string): Promise<StartedPostgreSqlContainer> =>
  new PostgreSqlContainer(image)
    .withLabels(labels)
    .withCommand(['postgres', '-c', 'max_connections=300'])
    .start();

/** vitest's global setup: starts a server of each store's image, for all test files. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const images = [composeImage('postgres'), composeImage('redis')] as const;
  const redisOf = (image: string) =>
    new RedisContainer(image).withLabels(labels).withCommand(['redis-server', '--databases', '1024']).start();
  const [postgres, redis] = await Promise.all([startPostgresContainer(images[0]), redisOf(images[1])]);
  await createTemplates(postgres.getConnectionUri());
  project.provide('servers', { postgres: postgres.getConnectionUri(), redis: redis.getConnectionUrl() });
  process.stdout.write(`Started ${images.join(' and ')}.\n`);
  return async () => void (await Promise.all([postgres.stop(), redis.stop()]));
}
