import type { Lifecycle } from '../../../shared/runtime/lifecycle.js';
import { startDatabase } from '../embedded-store.js';
import { migrate } from '../gateway.js';
import { failureOf, programsIn, thisCheckout } from '../programs.js';
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

/**
 * Starts and fills the one of a checkout, with files and logs in `dir`. The queue lives in the same PostgreSQL and has
 * no jobs.
 */
export async function openBlog(
  lifecycle: Lifecycle,
  dir: string,
  checkout = thisCheckout,
): Promise<BlogService> {
  const { url, pid } = await startDatabase(lifecycle, dir);
  await migrate({ DATABASE_URL: url }, { lifecycle, dir, checkout });
  lifecycle.stopping.throwIfAborted();
  const seeded = await seedPosts(url);
  const api = await programsIn(dir, lifecycle, checkout)('api', ['api'], {
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
