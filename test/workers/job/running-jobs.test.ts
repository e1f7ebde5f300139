import { beforeEach, describe, expect, it } from 'vitest';
import { Cancelled } from '../../../workers/gate/gated-call.js';
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
const reasonsOf = (...opened: ReturnType<typeof open>[]) => opened.map(({ signal }) => signal.reason);

describe('RunningJobs', () => {
  it('a job that is taken -> there until it is closed, by its chat and by what BullMQ knows it as', () => {
    const [first, next] = [open('chat'), open('chat-2', { chatId: 'chat' })];
    expect(jobs.ofChat('chat')).toEqual([first, next]);
    expect(jobs.find(next.queued)).toBe(next);
    jobs.close(first);
    expect(jobs.ofChat('chat')).toEqual([next]);
    jobs.close(next);
    expect([jobs.ofChat('chat'), jobs.find(next.queued)]).toEqual([[], undefined]);
  });

  it('the jobs of a pool -> how busy it is', async () => {
    const none = { inFlight: 0, unsettled: 0, oldestJobMs: undefined };
    expect(jobs.loadOf('openai')).toEqual(none);
    const [running, second, released] = [open('running'), open('second'), open('released')];
    open('other', {}, { provider: 'bedrock' });
    released.holdsLock = false;
    const oldestJobMs = expect.any(Number);
    expect(jobs.loadOf('openai')).toEqual({ inFlight: 3, unsettled: 2, oldestJobMs });
    running.end(undefined);
    expect(jobs.loadOf('openai')).toMatchObject({ inFlight: 2, unsettled: 2 });
    for (const job of [running, second, released]) jobs.close(job);
    expect(jobs.loadOf('openai')).toEqual(none);
  });

  it('a cancel -> aborts the jobs of the chat, both runs of one whose lock was lost, and no other', () => {
    const opened = [open('one'), open('one'), open('other')];
    jobs.cancel({ jobIds: ['one', 'unknown'] });
    expect(reasonsOf(...opened)).toEqual([cancelled, cancelled, undefined]);
  });

  // A message overtakes what lies on the queue.
  it('a cancel up to a minute before a job starts -> aborts it, if it is of the newest 10,000', () => {
    jobs.cancel({ jobIds: ['early'] });
    nowMs += 60_000;
    expect(reasonsOf(open('early'), open('other'))).toEqual([cancelled, undefined]);
    nowMs += 1;
    expect(reasonsOf(open('early'))).toEqual([undefined]);
    jobs.cancel({ jobIds: Array.from({ length: 10_001 }, (_, n) => `job-${n}`) });
    expect(reasonsOf(open('job-0'), open('job-1'))).toEqual([undefined, cancelled]);
  });

  it('a user is removed -> aborts the jobs of that user, later ones too, if it is of the newest 10,000', () => {
    const opened = [open('one', { user: 'removed' }), open('two', { user: 'other' })];
    jobs.cancel({ jobIds: [], users: ['removed'] });
    expect(reasonsOf(...opened, open('three', { user: 'removed' }))).toEqual([
      cancelled,
      undefined,
      cancelled,
    ]);
    jobs.cancelUsers(Array.from({ length: 10_000 }, (_, n) => `later-${n}`));
    expect(reasonsOf(open('four', { user: 'removed' }))).toEqual([undefined]);
  });

  it('an API process is gone -> aborts what it alone waits for, but nothing that it adds when it is back', () => {
    const lost = open('lost', { replyTo: 'gone' }, { timestamp: 10 });
    const stored = open('stored', { replyTo: 'gone', keptUntil: 1 }, { timestamp: 10 });
    expect(jobs.apis).toEqual(new Set(['gone']));
    jobs.cancelApis(new Map([['gone', 20]]));
    const later = [20, 21].map((timestamp) => open('next', { replyTo: 'gone' }, { timestamp }));
    expect(reasonsOf(lost, stored, ...later)).toEqual([cancelled, undefined, cancelled, undefined]);
  });

  it('all are aborted -> so is each that starts after that, but none that has ended', () => {
    const [running, ended] = [open('running'), open('ended')];
    ended.end(undefined);
    const reason = new Error('the end');
    jobs.abortAll(reason);
    expect(reasonsOf(running, ended, open('late'))).toEqual([reason, undefined, reason]);
  });
});
