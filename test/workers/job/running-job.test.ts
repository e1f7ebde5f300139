import { describe, expect, it } from 'vitest';
import { LockLost } from '../../../workers/gate/ends.js';
import type { RunningJob } from '../../../workers/job/running-job.js';
import { takeJob } from '../../support/running-jobs.js';

describe('RunningJob', () => {
  it('begins with its first call: until then it has waited, and no clock makes a time negative', () => {
    let now = 1000;
    const begun: number[] = [];
    const listeners = [{ begun: ({ timings }: RunningJob) => begun.push(timings.queueMs) }];
    const job = takeJob({ timestamp: 400, now: () => now, listeners });
    expect(job.timings).toEqual({ queueMs: 600, providerMs: 0 });
    job.begin();
    now += 50;
    job.recordFirstDelta();
    now += 50;
    job.recordFirstDelta();
    expect(job.timings).toEqual({ queueMs: 600, providerMs: 100, firstTokenMs: 50 });
    expect(begun).toEqual([600]);
    expect(takeJob({ timestamp: now + 20, now: () => now }).timings.queueMs).toBe(0);
  });

  it.each([
    [null, {}],
    ['text', {}],
    [{ replyTo: 7, user: 'me' }, { user: 'me' }],
  ])('reads what it can of the data of a job: %j', (data, facts) => {
    expect(takeJob({ data }).facts).toEqual(facts);
    expect(takeJob({ data }).chatId).toBe('job');
  });

  it('its lock is lost -> it is aborted, once; one that has ended is not', () => {
    const [job, ended] = [takeJob(), takeJob()];
    ended.end(undefined);
    expect([job.loseLock(), job.loseLock(), ended.loseLock()]).toEqual([true, false, false]);
    expect([job.holdsLock, ended.holdsLock]).toEqual([false, false]);
    expect([job.signal.reason, ended.signal.reason]).toEqual([expect.any(LockLost), undefined]);
  });
});
