import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startEmbeddedPostgres } from '../../../dev/postgres/embedded-postgres.js';
import { serverPid } from '../../release/support/server-facts.js';

/** A PostgreSQL of its own, which is killed with -9 and started again at its port. */
export async function startOwnPostgres() {
  const dataDir = mkdtempSync(join(tmpdir(), 'quillgate-killed-'));
  let running = await startEmbeddedPostgres({ dataDir });
  const { url } = running;
  return {
    ...{ kind: 'postgres' as const, url, databaseUrl: url },
    kill: async () => {
      process.kill(serverPid(dataDir), 'SIGKILL');
      await running.ended;
    },
    start: async () => {
      running = await startEmbeddedPostgres({ dataDir, port: Number(new URL(url).port) });
    },
    stop: async () => {
      await running.stop();
      rmSync(dataDir, { recursive: true });
    },
  };
}
