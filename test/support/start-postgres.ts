import { resolve } from 'node:path';
import { createTemplates, runServer, runServerVariable, startPostgresServer } from './postgres-server.js';

/** vitest's global setup of every project that needs PostgreSQL: one server for a run. Returns the teardown. */
export async function setup(): Promise<(() => Promise<void>) | undefined> {
  // Another project has started it, and stops it after all others.
  if (runServer() !== undefined) return undefined;
  // The tests start more than a hundred programs from the same code.
  process.env.NODE_COMPILE_CACHE ??= resolve('test-results/compile-cache');
  const { url, stop } = await startPostgresServer();
  await createTemplates(url);
  process.env[runServerVariable] = url;
  return async () => {
    delete process.env[runServerVariable];
    await stop();
  };
}
