import { describe, expect, it } from 'vitest';
import { Cancelled, createActiveJobs, LockLost } from '../../../workers/job/active-jobs.js';

const untilAborted = (stop: AbortSignal): Promise<unknown> =>
  new Promise((resolve) => {
    if (stop.aborted) resolve(stop.reason);
    stop.addEventListener('abort', () => resolve(stop.reason));
  });
const isAborted = async (stop: AbortSignal) => stop.aborted;
const cancelled = expect.any(Cancelled);

describe('createActiveJobs', () => {
  it('gives what the job gives, and throws what it throws', async () => {
    const jobs = createActiveJobs();
    expect(await jobs.run('a', async () => 1)).toBe(1);
    const error = new Error('x');
    await expect(jobs.run('a', () => Promise.reject(error))).rejects.toBe(error);
  });

  it('ends the jobs that are cancelled, and no other', async () => {
    const jobs = createActiveJobs();
    const [one, two] = ['one', 'two'].map((id) => jobs.run(id, untilAborted));
    const other = jobs.run('other', untilAborted);
    jobs.cancel(['one', 'two', 'unknown']);
    expect(await Promise.all([one, two])).toEqual([cancelled, cancelled]);
    const reason = new Error('the end');
    jobs.abortAll(reason);
    expect(await other).toBe(reason);
  });

  it('ends both runs of a job whose lock was lost', async () => {
    const jobs = createActiveJobs();
    const runs = [jobs.run('one', untilAborted), jobs.run('one', untilAborted)];
    jobs.cancel(['one']);
    expect(await Promise.all(runs)).toEqual([cancelled, cancelled]);
  });

  it('ends a job whose lock was lost, and lets it start again', async () => {
    const jobs = createActiveJobs();
    const [lost, other] = ['lost', 'other'].map((id) => jobs.run(id, untilAborted));
    jobs.lose(['lost', 'unknown']);
    expect(await lost).toEqual(expect.any(LockLost));
    expect(await jobs.run('lost', isAborted)).toBe(false);
    jobs.cancel(['other']);
    expect(await other).toEqual(cancelled);
  });

  // What is told overtakes what lies on the queue.
  it('ends a job at its start that was cancelled just before', async () => {
    const jobs = createActiveJobs();
    jobs.cancel(['early']);
    expect(await jobs.run('early', untilAborted)).toEqual(cancelled);
    expect(await jobs.run('other', isAborted)).toBe(false);
  });

  it('forgets cancelled jobs after a minute', async () => {
    let now = 0;
    const jobs = createActiveJobs({ now: () => now });
    jobs.cancel(['old']);
    now = 59_999;
    expect(await jobs.run('old', isAborted)).toBe(true);
    now = 60_000;
    expect(await jobs.run('old', isAborted)).toBe(false);
  });

  it('remembers the newest 10,000 at most', async () => {
    const jobs = createActiveJobs();
    jobs.cancel(Array.from({ length: 10_001 }, (_, n) => `job-${n}`));
    expect(await jobs.run('job-0', isAborted)).toBe(false);
    expect(await jobs.run('job-1', isAborted)).toBe(true);
  });

  it('ends whatever starts after the end', async () => {
    const jobs = createActiveJobs();
    const reason = new Error('the end');
    jobs.abortAll(reason);
    expect(await jobs.run('late', untilAborted)).toBe(reason);
  });
});
