import { expect, inject } from 'vitest';
import type { Books } from './support/books.js';
import { expectCodes } from './support/expectations.js';
import { fault } from './support/fault.js';
import { startOwnRedis } from './support/own-redis.js';

/** PostgreSQL takes some hundreds a second, and nobody is asked to wait for minutes. */
const wave = inject('store').kind === 'redis' ? 5000 : 500;
const providerMs = 6000;

fault(
  {
    id: 'Q6',
    timed: true,
    injected: `${wave} requests in one wave, one API and one worker process with room for all`,
    timeoutMs: 120_000,
  },
  async (books) => {
    const redis = inject('store').kind === 'redis' ? await startOwnRedis(books) : undefined;
    await books.start({
      ...(redis && { store: redis.store }),
      variables: {
        OPENAI_CONCURRENCY: String(wave),
        // The programs' own, in place of the catalogue's: what is tried here is whether they hold under this load.
        WORKER_LOCK_MS: '15000',
        WORKER_STALLED_CHECK_MS: '2500',
        CHAT_TIMEOUT_MS: '60000',
        OPENAI_TIMEOUT_MS: '45000',
        LOG_LEVEL: 'info',
      },
    });
    expect((await books.chat()).status).toBe(200);
    const startedAt = performance.now();
    const asked = Array.from({ length: wave }, () => books.ask({ model: `sim-latency-${providerMs}` }));
    const replies = await Promise.all(asked.map(({ reply }) => reply));
    const tookMs = Math.round(performance.now() - startedAt);
    expectCodes(replies, ['ok']);
    expect(linesOf(books, 'jobs lost to another worker')).toEqual([]);
    const cpu = redis && ` Redis ${(await cpuSecondsOf(redis.command)).toFixed(1)} s of CPU`;
    return `all 200, one call each, no lock lost; ${tookMs} ms for calls of ${providerMs};${cpu ?? ''}`;
  },
);

const linesOf = (books: Books, message: string): string[] =>
  books.deployment
    .logs()
    .split('\n')
    .filter((line) => line.includes(message));

async function cpuSecondsOf(command: (name: string, ...args: string[]) => Promise<unknown>): Promise<number> {
  const info = String(await command('INFO', 'cpu'));
  const of = (name: string) => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(info)?.[1]);
  return of('used_cpu_user') + of('used_cpu_sys');
}
