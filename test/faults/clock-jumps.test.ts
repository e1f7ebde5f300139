import { expect, vi } from 'vitest';
import { codeOf } from './support/balance.js';
import type { Books } from './support/books.js';
import { fault } from './support/fault.js';

/** Node options with which each SIGUSR2 moves a program's clock: forward by two minutes, and back again. */
const jumping = `--import=data:text/javascript,${encodeURIComponent(
  'const now = Date.now; let aheadMs = 0; Date.now = () => now() + aheadMs; process.on("SIGUSR2", () => { aheadMs = 120000 - aheadMs; });',
)}`;

fault(
  {
    id: 'D3',
    timed: true,
    injected: "one of two workers' clocks jumps by two minutes, and back",
    callsPerRequest: 2,
  },
  async (books) => {
    const deployment = await books.start({ variables: { WORKER_PROVIDERS: 'openai' } });
    const worker = await deployment.startWorker({ NODE_OPTIONS: jumping });
    await codesOf(books, 20);
    process.kill(worker.pid, 'SIGUSR2');
    await logged(books, 'the clock has jumped');
    const codes = await codesOf(books, 60);
    // A worker that was waiting for a job when it was paused still takes that one.
    expect(codes.filter((code) => code !== 'ok').length).toBeLessThanOrEqual(1);
    process.kill(worker.pid, 'SIGUSR2');
    await logged(books, 'the clock agrees');
    await Promise.all(deployment.workers.map((healthy) => healthy.stop({ graceMs: 10_000 })));
    expect(new Set(await codesOf(books, 20))).toEqual(new Set(['ok']));
    const others = codes.filter((code) => code !== 'ok');
    return `60 requests meanwhile, ${others.length} of them failed ${others.join()}; the worker went on when its clock was right`;
  },
);

async function codesOf(books: Books, count: number): Promise<string[]> {
  const replies = await Promise.all(
    Array.from({ length: count }, () => books.chat({ model: 'sim-latency-50' })),
  );
  return replies.map(codeOf);
}

/** Resolves once a program has logged these words. */
const logged = (books: Books, words: string): Promise<void> =>
  vi.waitFor(() => expect(books.deployment.logs()).toContain(words), { timeout: 10_000, interval: 100 });
