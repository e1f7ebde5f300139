import { randomUUID } from 'node:crypto';
import type { TestProject } from 'vitest/node';
import { docker, tryDocker } from './docker.js';

declare module 'vitest' {
  interface ProvidedContext {
    image: string;
  }
}

/** vitest's global setup: builds the image once, for all test files. Throws where there is no Docker engine. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const engine = await tryDocker(['info']);
  if (engine.code !== 0) throw new Error('These tests need a Docker engine; none answers.');
  const image = `quillgate:test-${randomUUID().slice(0, 8)}`;
  const startedAt = performance.now();
  await docker('build', '--quiet', '--tag', image, '.');
  process.stdout.write(`Built ${image} in ${Math.round((performance.now() - startedAt) / 1000)} s.\n`);
  project.provide('image', image);
  return async () => void (await docker('image', 'rm', '--force', image));
}
