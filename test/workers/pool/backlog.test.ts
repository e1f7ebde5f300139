import { beforeEach, describe, expect, it } from 'vitest';
import { Backlog } from '../../../workers/pool/backlog.js';

/** The waiting jobs, by priority. */
let waiting: Record<string, number>;
let counted: number;
let nowMs: number;
let whileCounting: () => void;
let backlog: Backlog;

beforeEach(() => {
  waiting = {};
  counted = 0;
  nowMs = 0;
  whileCounting = () => {};
  const getCountsPerPriority = async () => {
    counted += 1;
    whileCounting();
    return waiting;
  };
  backlog = new Backlog({
    queue: { getCountsPerPriority, getRateLimitTtl: async () => -2 },
    now: () => nowMs,
  });
});

/** How many jobs a heartbeat a second later would count. */
async function count(hasRoom = true): Promise<number> {
  nowMs += 1000;
  const { waitedFor, async } = await backlog.count({ hasRoom });
  return [...waitedFor, ...async].reduce((total, jobs) => total + jobs, 0);
}

describe('count', () => {
  it('counts what waits at every turn, as long as there is something', async () => {
    waiting = { 0: 2, 3: 1, 100: 4 };
    expect(await count()).toBe(7);
    expect(await count()).toBe(7);
    expect(counted).toBe(2);
  });

  it('does not ask again once it has found nothing, until the pool takes a job', async () => {
    expect([await count(), await count(), await count()]).toEqual([0, 0, 0]);
    expect(counted).toBe(1);
    nowMs += 1;
    backlog.forget();
    waiting = { 0: 2 };
    expect(await count()).toBe(2);
  });

  it('does not ask when the pool has looked for a job and there was none', async () => {
    nowMs += 1;
    backlog.recordEmpty();
    expect(await count()).toBe(0);
    expect(counted).toBe(0);
  });

  it('asks every time while the pool has no room, and once it has some again', async () => {
    expect(await count()).toBe(0);
    expect([await count(false), await count(false)]).toEqual([0, 0]);
    nowMs += 1;
    backlog.forget();
    await count(false);
    waiting = { 0: 1 };
    expect(await count()).toBe(1);
    expect(counted).toBe(5);
  });

  it('asks again when a job was taken while it counted', async () => {
    whileCounting = () => backlog.forget();
    await count();
    waiting = { 0: 1 };
    expect(await count()).toBe(1);
  });

  it('asks again after five seconds: the store may have failed to give the pool a job', async () => {
    await count();
    waiting = { 0: 1 };
    nowMs += 3000;
    expect(await count()).toBe(0);
    expect(await count()).toBe(1);
  });
});
