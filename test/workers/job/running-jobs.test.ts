import { beforeEach, describe, expect, it } from 'vitest';
import { Cancelled } from '../../../workers/gate/ends.js';
import { RunningJobs } from '../../../workers/job/running-jobs.js';
import { takeJob } from '../../support/running-jobs.js';

const cancelled = expect.any(Cancelled);
let nowMs: number;
let jobs: RunningJobs;
beforeEach(() => {
  nowMs = 1;
  jobs = new RunningJobs({ now: () => nowMs });
});

/** A job that has just been taken. */
function open(id: string, data: object = {}, options: Parameters<typeof takeJob>[0] = {}) {
  const job = takeJob({ id, data, ...options });
  jobs.open(job);
  return job;
}
const reasonOf = ({ signal }: ReturnType<typeof open>): unknown => signal.reason;

describe('RunningJobs', () => {
  it('has a job until it is closed, by its chat and by what BullMQ knows it as', () => {
    const [first, next] = [open('chat'), open('chat-2', { chatId: 'chat' })];
    expect(jobs.ofChat('chat')).toEqual([first, next]);
    expect(jobs.find(next.queued)).toBe(next);
    jobs.close(first);
    expect(jobs.ofChat('chat')).toEqual([next]);
    jobs.close(next);
    expect([jobs.ofChat('chat'), jobs.find(next.queued)]).toEqual([[], undefined]);
  });

  it('says how busy a pool is', async () => {
    const none = { inFlight: 0, parked: 0, unsettled: 0 };
    expect(jobs.loadOf('openai')).toEqual({ ...none, oldestJobMs: undefined });
    const [running, parked, released] = [open('running'), open('parked'), open('released')];
    open('other', {}, { provider: 'bedrock' });
    await parked.slot.take();
    parked.slot.park();
    released.holdsLock = false;
    expect(jobs.loadOf('openai')).toMatchObject({ inFlight: 3, parked: 1, unsettled: 2 });
    expect(jobs.loadOf('openai').oldestJobMs).toBeGreaterThanOrEqual(0);
    running.end(undefined);
    expect(jobs.loadOf('openai')).toMatchObject({ inFlight: 2, unsettled: 2 });
    for (const job of [running, parked, released]) jobs.close(job);
    expect(jobs.loadOf('openai')).toMatchObject(none);
  });

  it('aborts the jobs that are cancelled, both runs of one whose lock was lost, and no other', () => {
    const [one, again, other] = [open('one'), open('one'), open('other')];
    jobs.cancel({ jobIds: ['one', 'unknown'] });
    expect([one, again, other].map(reasonOf)).toEqual([cancelled, cancelled, undefined]);
  });

  // A message overtakes what lies on the queue.
  it('aborts a job at its start that was cancelled within the minute before', () => {
    jobs.cancel({ jobIds: ['early'] });
    nowMs += 60_000;
    expect([open('early'), open('other')].map(reasonOf)).toEqual([cancelled, undefined]);
    nowMs += 1;
    expect(reasonOf(open('early'))).toBeUndefined();
  });

  it('remembers the newest 10,000 at most', () => {
    jobs.cancel({ jobIds: Array.from({ length: 10_001 }, (_, n) => `job-${n}`) });
    expect([open('job-0'), open('job-1')].map(reasonOf)).toEqual([undefined, cancelled]);
  });

  it('aborts the jobs of removed users, those that start later too, and no other', () => {
    const [running, other] = [open('one', { user: 'removed' }), open('two', { user: 'other' })];
    jobs.cancel({ jobIds: [], users: ['removed'] });
    const later = open('three', { user: 'removed' });
    expect([running, other, later].map(reasonOf)).toEqual([cancelled, undefined, cancelled]);
    jobs.cancelUsers(Array.from({ length: 10_000 }, (_, n) => `later-${n}`));
    expect(reasonOf(open('four', { user: 'removed' }))).toBeUndefined();
  });

  it('aborts the jobs that only a lost API process waits for, but not those that it adds when it is back', () => {
    const lost = open('lost', { replyTo: 'gone' }, { timestamp: 10 });
    const stored = open('stored', { replyTo: 'gone', keptUntil: 1 }, { timestamp: 10 });
    expect(jobs.apis).toEqual(new Set(['gone']));
    jobs.cancelApis(new Map([['gone', 20]]));
    const later = [20, 21].map((timestamp) => open('next', { replyTo: 'gone' }, { timestamp }));
    expect([lost, stored, ...later].map(reasonOf)).toEqual([cancelled, undefined, cancelled, undefined]);
  });

  it('aborts each job that starts after all were aborted, but none that has ended', () => {
    const [running, ended] = [open('running'), open('ended')];
    ended.end(undefined);
    const reason = new Error('the end');
    jobs.abortAll(reason);
    expect([running, ended, open('late')].map(reasonOf)).toEqual([reason, undefined, reason]);
  });
});
