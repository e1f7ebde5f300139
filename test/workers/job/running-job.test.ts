import { describe, expect, it } from 'vitest';
import { LockLost } from '../../../workers/gate/gated-call.js';
import { takeJob } from '../../support/running-jobs.js';

describe('RunningJob', () => {
  it('a clock that is behind that of the API process -> no time is negative, and the first delta counts', () => {
    let now = 1000;
    const job = takeJob({ timestamp: 1020, now: () => now });
    job.begin();
    for (let n = 0; n < 2; n += 1) {
      now += 50;
      job.recordFirstDelta();
    }
    expect(job.timings).toEqual({ queueMs: 0, providerMs: 100, firstTokenMs: 50 });
  });

  it.each([
    [null, {}],
    ['text', {}],
    [{ replyTo: 7, user: 'me' }, { user: 'me' }],
  ])('data that are %j -> it reads what it can', (data, facts) => {
    const job = takeJob({ data });
    expect([job.facts, job.chatId]).toEqual([facts, 'job']);
  });

  it('its lock is lost -> it is aborted, once; one that has ended is not', () => {
    const [job, ended] = [takeJob(), takeJob()];
    ended.end(undefined);
    expect([job.loseLock(), job.loseLock(), ended.loseLock()]).toEqual([true, false, false]);
    expect([job.holdsLock, ended.holdsLock]).toEqual([false, false]);
    expect([job.signal.reason, ended.signal.reason]).toEqual([expect.any(LockLost), undefined]);
  });
});
