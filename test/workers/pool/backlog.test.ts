import { beforeEach, describe, expect, it } from 'vitest';
import { Backlog } from '../../../workers/pool/backlog.js';

/** The waiting jobs, by priority. */
let waiting: Record<string, number>;
let counted: number;
let nowMs: number;
let whileCounting: () => void;
let backlog: Backlog;
/** The rest of the window that runs, and the rate that the queue has. */
let ttlMs: number;
let newest: { max: number; duration: number } | null;

beforeEach(() => {
  [waiting, counted, nowMs, whileCounting] = [{}, 0, 0, () => {}];
  const getCountsPerPriority = async () => {
    counted += 1;
    whileCounting();
    return waiting;
  };
  const queue = {
    getCountsPerPriority,
    getRateLimitTtl: async () => ttlMs,
    getGlobalRateLimit: async () => newest,
    removeRateLimitKey: async () => (ttlMs = -2),
  };
  backlog = new Backlog({ queue, now: () => nowMs });
});

/** How many jobs a heartbeat a second later would count. */
async function count({ hasRoom = true, afterMs = 1000 } = {}): Promise<number> {
  nowMs += afterMs;
  const { waitedFor, async } = await backlog.count({ hasRoom });
  return [...waitedFor, ...async].reduce((total, jobs) => total + jobs, 0);
}

/** A job is taken, and others come behind it. */
function take(behind = {}) {
  nowMs += 1;
  backlog.forget();
  waiting = behind;
}

describe('count', () => {
  it('jobs wait -> it counts them every time', async () => {
    waiting = { 0: 2, 3: 1, 100: 4 };
    expect([await count(), await count(), counted]).toEqual([7, 7, 2]);
  });

  it('it has found nothing -> it does not ask again until the pool takes a job', async () => {
    expect([await count(), await count(), await count(), counted]).toEqual([0, 0, 0, 1]);
    take({ 0: 2 });
    expect(await count()).toBe(2);
  });

  it('the pool has looked for a job in vain -> it does not ask', async () => {
    nowMs += 1;
    backlog.recordEmpty();
    expect([await count(), counted]).toEqual([0, 0]);
  });

  it('the pool has no room -> it asks every time, and once there is some again', async () => {
    const isFull = { hasRoom: false };
    expect([await count(), await count(isFull), await count(isFull), counted]).toEqual([0, 0, 0, 3]);
    take();
    await count(isFull);
    waiting = { 0: 1 };
    expect([await count(), counted]).toEqual([1, 5]);
  });

  it('a job is taken while it counts -> it asks again', async () => {
    whileCounting = () => backlog.forget();
    await count();
    waiting = { 0: 1 };
    expect(await count()).toBe(1);
  });

  it('after five seconds -> it asks again: the store may have failed to give the pool a job', async () => {
    await count();
    waiting = { 0: 1 };
    expect([await count({ afterMs: 4000 }), await count()]).toEqual([0, 1]);
  });
});

it.each<[string, ttlMs: number, durationMs: number | null, leftMs: number]>([
  ['has let all its jobs begin', 900, 1000, 900],
  ['lets more begin', -2, 1000, 0],
  ['was raised, a late worker opened a window of the old one', 599_000, 1000, 0],
  ['was lowered, of which this worker has not heard', 599_000, 600_000, 599_000],
  ['was taken away, a late worker opened a window of it', 599_000, null, 0],
])('a rate of two a second that %s -> how long it lets none begin', async (_, ttl, duration, leftMs) => {
  ttlMs = ttl;
  newest = duration === null ? null : { max: 2, duration };
  expect(await backlog.rateLeftMs({ max: 2, durationMs: 1000 })).toBe(leftMs);
  expect(ttlMs).toBe(leftMs || -2);
});
