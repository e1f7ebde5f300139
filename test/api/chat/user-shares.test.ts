import { beforeEach, describe, expect, it } from 'vitest';
import { type CountedJob, UserShares } from '../../../api/chat/user-shares.js';
import { countAll } from '../../../shared/queue/priority.js';

const me = { provider: 'openai', user: 'me', isAsync: false } as const;
let jobs: UserShares;
let added: number;

beforeEach(() => {
  jobs = new UserShares();
  added = 0;
});

const addOne = (owner = me): CountedJob => {
  added += 1;
  return jobs.add(`job ${added}`, owner);
};
const addMany = (count: number, owner = me): CountedJob[] =>
  Array.from({ length: count }, () => addOne(owner));
const releaseAll = (counted: readonly CountedJob[]) => {
  for (const job of counted) job.release();
};

describe('UserShares', () => {
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
    expect(addOne().level).toBe(7);
    releaseAll(counted.slice(60, 90));
    expect(addOne().level).toBe(4);
  });

  it('counts a job once until the last of those who wait for it releases it', () => {
    const first = jobs.add('joined', me);
    const second = jobs.add('joined', { ...me, user: 'another' });
    expect([first.level, second.level]).toEqual([0, 0]);
    expect(countAll(jobs.of('openai').waitedFor)).toBe(1);
    first.release();
    expect(jobs.nextLevel(me)).toBe(1);
    second.release();
    expect(countAll(jobs.of('openai').waitedFor)).toBe(0);
    const again = jobs.add('joined', me);
    expect(countAll(jobs.of('openai').waitedFor)).toBe(1);
    again.release();
    expect(jobs.nextLevel(me)).toBe(0);
  });

  it('forgets a user without outstanding jobs', () => {
    releaseAll(addMany(100));
    expect(jobs.nextLevel(me)).toBe(0);
    expect(countAll(jobs.of('openai').waitedFor)).toBe(0);
  });

  it('has a last level, however large a flood is', () => {
    const levels = addMany(70_000).map(({ level }) => level);
    expect(Math.max(...levels)).toBe(16);
    expect(countAll(jobs.of('openai').waitedFor)).toBe(70_000);
  });

  it('counts a job where its chat was passed on to, until it is released', () => {
    const counted = addMany(4);
    const elsewhere = { ...me, provider: 'bedrock' } as const;
    for (const n of [1, 2, 3, 4]) jobs.move(`job ${n}`, 'bedrock');
    jobs.move('job 4', 'bedrock');
    jobs.move('unknown', 'bedrock');
    expect([jobs.nextLevel(me), jobs.nextLevel(elsewhere)]).toEqual([0, 3]);
    expect([countAll(jobs.of('openai').waitedFor), countAll(jobs.of('bedrock').waitedFor)]).toEqual([0, 4]);
    releaseAll(counted);
    expect(jobs.nextLevel(elsewhere)).toBe(0);
    expect(countAll(jobs.of('bedrock').waitedFor)).toBe(0);
  });
});
