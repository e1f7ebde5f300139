import { beforeEach, describe, expect, it } from 'vitest';
import { Backlog } from '../../../workers/pool/backlog.js';

/** The waiting jobs, by priority. */
let waiting: Record<string, number>;
let counted: number;
let nowMs: number;
let whileCounting: () => void;
let backlog: Backlog;

beforeEach(() => {
  [waiting, counted, nowMs, whileCounting] = [{}, 0, 0, () => {}];
  const getCountsPerPriority = async () => {
    counted += 1;
    whileCounting();
    return waiting;
  };
  const queue = { getCountsPerPriority, getRateLimitTtl: async () => -2 };
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
