import { resolve } from 'node:path';
import { createTemplates, runServer, runServerVariable, startPostgresServer } from './postgres-server.js';

/** vitest's global setup of every project whose tests need PostgreSQL: one server for the whole run. Gives the teardown. */
export async function setup(): Promise<(() => Promise<void>) | undefined> {
  // Another project has started it, and ends it when all others have ended.
  if (runServer() !== undefined) return undefined;
  // A hundred programs and more are started from the same code.
  process.env.NODE_COMPILE_CACHE ??= resolve('test-results/compile-cache');
  const { url, stop } = await startPostgresServer();
  await createTemplates(url);
  process.env[runServerVariable] = url;
  return async () => {
    delete process.env[runServerVariable];
    await stop();
  };
}
