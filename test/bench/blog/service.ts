import { migrateDatabase } from '../../../db/migrate.js';
import { parseConfig } from '../../../shared/config.js';
import type { Lifecycle } from '../../../shared/lifecycle.js';
import { migrateQueueStore } from '../../../shared/queue-stores/open.js';
import { startDatabase } from '../embedded-store.js';
import { failureOf, programsIn } from '../programs.js';
import { type Seeded, seedPosts } from './seed.js';

/** One API process on a PostgreSQL full of posts; nothing else runs. */
export interface BlogService {
  readonly origin: string;
  readonly databaseUrl: string;
  readonly seeded: Seeded;
  readonly pids: { readonly api: number; readonly store: number | undefined };
  /** Rejects when the API ends although nobody asked it to. */
  readonly failed: Promise<never>;
}

const token = 'only-on-loopback-and-only-for-the-benchmark';

/** With the benchmark's only token. */
export const writerHeaders = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };

/** Starts and fills it, with files and logs in `dir`. The queue lives in the same PostgreSQL and has no jobs. */
export async function openBlog(lifecycle: Lifecycle, dir: string): Promise<BlogService> {
  const { url, pid } = await startDatabase(lifecycle, dir);
  await migrateDatabase(url);
  await migrateQueueStore(parseConfig({ DATABASE_URL: url }, 'migrate'));
  lifecycle.stopping.throwIfAborted();
  const seeded = await seedPosts(url);
  const api = await programsIn(dir, lifecycle)('api', ['api'], {
    PATH: process.env.PATH,
    NODE_ENV: 'production',
    HOST: '127.0.0.1',
    PORT: '0',
    LOG_LEVEL: 'info',
    // All readers of the benchmark come from one address.
    BLOG_READS_PER_SECOND: '0',
    BLOG_TOKEN: token,
    DATABASE_URL: url,
  });
  const failed = failureOf([api], dir);
  await Promise.race([api.ready, failed]);
  const origin = `http://127.0.0.1:${api.port}`;
  return { origin, databaseUrl: url, seeded, pids: { api: api.pid, store: pid }, failed };
}
