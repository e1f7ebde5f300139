import { describe, expect, it } from 'vitest';
import { ActiveJobs, Cancelled, LockLost } from '../../../workers/job/active-jobs.js';

const untilAborted = (stop: AbortSignal): Promise<unknown> =>
  new Promise((resolve) => {
    if (stop.aborted) resolve(stop.reason);
    stop.addEventListener('abort', () => resolve(stop.reason));
  });
const isAborted = async (stop: AbortSignal) => stop.aborted;
const cancelled = expect.any(Cancelled);

describe('ActiveJobs', () => {
  it('gives what the job gives, and throws what it throws', async () => {
    const jobs = new ActiveJobs();
    expect(await jobs.run('a', async () => 1)).toBe(1);
    const error = new Error('x');
    await expect(jobs.run('a', () => Promise.reject(error))).rejects.toBe(error);
  });

  it('aborts the jobs that are cancelled, and no other', async () => {
    const jobs = new ActiveJobs();
    const [one, two] = ['one', 'two'].map((id) => jobs.run(id, untilAborted));
    const other = jobs.run('other', untilAborted);
    jobs.cancel(['one', 'two', 'unknown']);
    expect(await Promise.all([one, two])).toEqual([cancelled, cancelled]);
    const reason = new Error('the end');
    jobs.abortAll(reason);
    expect(await other).toBe(reason);
  });

  it('aborts both runs of a job whose lock was lost', async () => {
    const jobs = new ActiveJobs();
    const runs = [jobs.run('one', untilAborted), jobs.run('one', untilAborted)];
    jobs.cancel(['one']);
    expect(await Promise.all(runs)).toEqual([cancelled, cancelled]);
  });

  it('aborts a job whose lock was lost, and lets it start again', async () => {
    const jobs = new ActiveJobs();
    const [lost, other] = ['lost', 'other'].map((id) => jobs.run(id, untilAborted, { token: 'one' }));
    // The run under another token is a later one.
    const again = jobs.run('lost', untilAborted, { token: 'two' });
    const locks = new Map([
      ['lost', 'one'],
      ['unknown', 'one'],
    ]);
    expect(jobs.abortLost(locks)).toEqual(['lost']);
    expect(await lost).toEqual(expect.any(LockLost));
    expect(await jobs.run('lost', isAborted)).toBe(false);
    jobs.cancel(['other', 'lost']);
    expect(await Promise.all([other, again])).toEqual([cancelled, cancelled]);
  });

  // A message overtakes what lies on the queue.
  it('aborts a job at its start that was cancelled just before', async () => {
    const jobs = new ActiveJobs();
    jobs.cancel(['early']);
    expect(await jobs.run('early', untilAborted)).toEqual(cancelled);
    expect(await jobs.run('other', isAborted)).toBe(false);
  });

  it('forgets cancelled jobs after a minute', async () => {
    let now = 1;
    const jobs = new ActiveJobs({ now: () => now });
    jobs.cancel(['old']);
    now += 60_000;
    expect(await jobs.run('old', isAborted)).toBe(true);
    now += 1;
    expect(await jobs.run('old', isAborted)).toBe(false);
  });

  it('remembers the newest 10,000 at most', async () => {
    const jobs = new ActiveJobs();
    jobs.cancel(Array.from({ length: 10_001 }, (_, n) => `job-${n}`));
    expect(await jobs.run('job-0', isAborted)).toBe(false);
    expect(await jobs.run('job-1', isAborted)).toBe(true);
  });

  // Finding M7.
  it('aborts the jobs of removed users, those that start later too, and no other', async () => {
    const jobs = new ActiveJobs();
    const running = jobs.run('one', untilAborted, { user: 'removed' });
    const other = jobs.run('two', untilAborted, { user: 'other' });
    jobs.onCancel({ jobIds: [], users: ['removed'] });
    expect(await running).toEqual(cancelled);
    expect(await jobs.run('three', isAborted, { user: 'removed' })).toBe(true);
    jobs.cancelUsers(Array.from({ length: 10_000 }, (_, n) => `later-${n}`));
    expect(await jobs.run('four', isAborted, { user: 'removed' })).toBe(false);
    jobs.cancel(['two']);
    expect(await other).toEqual(cancelled);
  });

  // Finding M4.
  it('aborts the jobs that only a lost API process waits for, but not those that it adds when it is back', async () => {
    const jobs = new ActiveJobs();
    const lost = jobs.run('lost', untilAborted, { api: 'gone', addedAt: 10 });
    const stored = jobs.run('stored', untilAborted, { addedAt: 10 });
    expect(jobs.apis).toEqual(new Set(['gone']));
    jobs.cancelApis(new Map([['gone', 20]]));
    expect(await lost).toEqual(cancelled);
    const [queued, back] = [20, 21].map((addedAt) => jobs.run('next', isAborted, { api: 'gone', addedAt }));
    expect(await Promise.all([queued, back])).toEqual([true, false]);
    jobs.cancel(['stored']);
    expect(await stored).toEqual(cancelled);
  });

  it('aborts whatever starts after all were aborted', async () => {
    const jobs = new ActiveJobs();
    const reason = new Error('the end');
    jobs.abortAll(reason);
    expect(await jobs.run('late', untilAborted)).toBe(reason);
  });
});
