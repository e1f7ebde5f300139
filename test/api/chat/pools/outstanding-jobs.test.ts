import { beforeEach, describe, expect, it } from 'vitest';
import { type CountedJob, OutstandingJobs } from '../../../../api/chat/pools/outstanding-jobs.js';
import { countAll } from '../../../../shared/queue/priority.js';

const me = { provider: 'openai', user: 'me', isAsync: false } as const;
let jobs: OutstandingJobs;

beforeEach(() => {
  jobs = new OutstandingJobs();
});

const addMany = (count: number, owner = me): CountedJob[] =>
  Array.from({ length: count }, () => jobs.add(owner));
const releaseAll = (counted: readonly CountedJob[]) => {
  for (const job of counted) job.release();
};

describe('OutstandingJobs', () => {
  it("puts a user's next job one level further back at each doubling", () => {
    const levels = addMany(17).map(({ level }) => level);
    expect(levels).toEqual([0, 1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4, 5]);
  });

  it('counts each user, each provider and asynchronous chats for themselves', () => {
    addMany(100);
    expect(jobs.nextLevel(me)).toBe(7);
    expect(jobs.nextLevel({ ...me, user: 'another' })).toBe(0);
    expect(jobs.nextLevel({ ...me, provider: 'bedrock' })).toBe(0);
    expect(jobs.nextLevel({ ...me, isAsync: true })).toBe(0);
  });

  it("does not let a user's new job overtake the older ones when a few have ended", () => {
    const counted = addMany(100);
    releaseAll(counted.slice(0, 60));
    expect(jobs.add(me).level).toBe(7);
    releaseAll(counted.slice(60, 90));
    expect(jobs.add(me).level).toBe(4);
  });

  it('forgets who has nothing outstanding', () => {
    releaseAll(addMany(100));
    expect(jobs.nextLevel(me)).toBe(0);
    expect(countAll(jobs.of('openai').waitedFor)).toBe(0);
  });

  it('has a last level, however large a flood is', () => {
    const levels = addMany(70_000).map(({ level }) => level);
    expect(Math.max(...levels)).toBe(16);
    expect(countAll(jobs.of('openai').waitedFor)).toBe(70_000);
  });
});
