import { expect, inject } from 'vitest';
import { percentile, withLag } from '../support/lateness.js';
import { codeOf } from './support/balance.js';
import type { Books } from './support/books.js';
import { keepDoing, timed, tookMsOf } from './support/expectations.js';
import { fault } from './support/fault.js';
import { paced } from './support/pace.js';

const concurrency = 10;
const model = 'sim-latency-500';
const capacityPerSecond = concurrency / 0.5;
const deadlineSeconds = 6;
/** As long as the catalogue has it on Redis; on PostgreSQL a third shows the same. */
const loadSeconds = inject('store').kind === 'redis' ? 60 : 20;

fault(
  {
    id: 'Q1',
    timed: true,
    injected: `five times the capacity of 20 requests/s for ${loadSeconds} s`,
    timeoutMs: 150_000,
  },
  async (books) => {
    await books.start({ variables: { OPENAI_CONCURRENCY: String(concurrency) } });
    // Until the pool has sent its pace, the load cannot be known to be too high.
    await Promise.all(Array.from({ length: concurrency }, () => books.chat({ model })));
    const reachedPerSecond = await measureCapacity(books);
    const watch = watchBacklog(books);
    const order = { count: 5 * capacityPerSecond * loadSeconds, everyMs: 1000 / (5 * capacityPerSecond) };
    const { result, lagMs } = await withLag(async () => {
      const startedAt = performance.now();
      // A busy machine sends the last one later than planned.
      const lastSent = Promise.withResolvers<number>();
      let sent = 0;
      const sending = paced(order, async () => {
        sent += 1;
        if (sent === order.count) lastSent.resolve(performance.now());
        return { reply: await books.chat({ model }), at: performance.now() };
      });
      const looking = keepDoing(100, () => timed(fetch(`${books.deployment.url}/livez`)));
      const endsAt = await lastSent.promise;
      const looks = await Promise.all(looking.stop());
      const seconds = (endsAt - startedAt) / 1000;
      return {
        endsAt,
        seconds,
        looks,
        normalAgain: await untilNormal(books, endsAt),
        replies: await sending,
      };
    });
    const { endsAt, seconds, looks, normalAgain, replies } = result;
    const codes = replies.map(({ reply }) => codeOf(reply));
    expect(codes.filter((code) => !['ok', 'overloaded', 'timeout'].includes(code))).toEqual([]);
    const good = replies.filter(({ reply, at }) => reply.status === 200 && at <= endsAt).length / seconds;
    expect(good).toBeGreaterThanOrEqual(0.9 * reachedPerSecond);
    const refusals = replies.map(({ reply }) => reply).filter((reply) => codeOf(reply) === 'overloaded');
    for (const { headers } of refusals) expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
    const refusedInMs = tookMsOf(refusals, 0.99);
    // No longer than what needs neither store nor worker.
    expect(refusedInMs).toBeLessThan(50 + lagMs + percentile(looks, 0.99));
    const most = watch.stop();
    expect(most).toBeLessThanOrEqual(1.2 * capacityPerSecond * deadlineSeconds + concurrency);
    expect(normalAgain).toBeLessThan(10_000);
    const late = codes.filter((code) => code === 'timeout').length;
    return (
      `${good.toFixed(1)} good answers/s of ${reachedPerSecond.toFixed(1)}, ${refusals.length} refusals (p99 ${refusedInMs.toFixed(0)} ms), ${late} too late, ` +
      `at most ${most} jobs at once, normal ${Math.round(normalAgain)} ms after`
    );
  },
);

/** Answers a second while the load is below the capacity of a busy machine. */
async function measureCapacity(books: Books): Promise<number> {
  const rounds = 10;
  const startedAt = performance.now();
  const caller = async () => {
    for (let round = 0; round < rounds; round += 1) expect((await books.chat({ model })).status).toBe(200);
  };
  await Promise.all(Array.from({ length: concurrency }, caller));
  return (rounds * concurrency * 1000) / (performance.now() - startedAt);
}

const staleCount = 6;

/** Looks twice a second at how many jobs there are; `stop` gives the most. */
function watchBacklog(books: Books): { stop(): number } {
  let most = 0;
  const look = async () => {
    most = Math.max(most, await books.jobs.unfinished());
  };
  const timer = setInterval(() => void look().catch(() => undefined), 500);
  return {
    stop: () => {
      clearInterval(timer);
      return most;
    },
  };
}

/** How long after the end of the load a request is answered as if there had been none, in milliseconds. */
async function untilNormal(books: Books, endsAt: number): Promise<number> {
  for (;;) {
    const reply = await books.chat({ model });
    if (reply.status === 200 && reply.tookMs < 1000) return performance.now() - endsAt;
  }
}

fault(
  {
    id: 'Q2',
    timed: true,
    injected: 'a backlog that is older than its deadline: the worker frozen meanwhile',
  },
  async (books) => {
    const { workers, simulator } = await books.start({ variables: { OPENAI_CONCURRENCY: '2' } });
    // So often that one slow call at the start does not make the rest look too much for a deadline of a second.
    for (let warm = 0; warm < 10; warm += 1) expect((await books.chat()).status).toBe(200);
    const since = simulator.calls.lastId;
    const pid = workers[0]?.pid ?? 0;
    process.kill(pid, 'SIGSTOP');
    const patience = { Prefer: 'wait=1' };
    const stale = await Promise.all(
      Array.from({ length: staleCount }, () => books.chat({ headers: patience })),
    );
    expect(stale.map(codeOf).filter((code) => code !== 'timeout')).toEqual([]);
    process.kill(pid, 'SIGCONT');
    const startedAt = performance.now();
    const fresh = await Promise.all(Array.from({ length: 5 }, () => books.chat()));
    expect(fresh.map(codeOf)).toEqual(['ok', 'ok', 'ok', 'ok', 'ok']);
    const tookMs = Math.round(performance.now() - startedAt);
    expect(simulator.calls.list({ since })).toHaveLength(5);
    return `${staleCount} × 500 timeout without a call; 5 fresh ones 200 in ${tookMs} ms`;
  },
);
