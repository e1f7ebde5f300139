import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { LockLost } from '../../../workers/gate/gated-call.js';
import { RunningJobs } from '../../../workers/job/running-jobs.js';
import { LockRenewal, type LockRenewalDeps } from '../../../workers/pool/lock-renewal.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { takeJob } from '../../support/running-jobs.js';

let renewal: LockRenewal;
let extendLocks: LockRenewalDeps['extendLocks'];
let jobs: RunningJobs;
let logged: ReturnType<typeof createRecordingLog>;
const lockMs = 60_000;
let nowMs = 0;

beforeEach(() => {
  jobs = new RunningJobs();
  logged = createRecordingLog();
  extendLocks = async () => [];
  renewal = new LockRenewal({
    extendLocks: (...locks) => extendLocks(...locks),
    provider: 'openai',
    lockMs,
    jobs,
    log: logged.log,
    now: () => nowMs,
  });
});
afterEach(() => renewal.stop());

function hold(id: string) {
  const job = takeJob({ id });
  jobs.open(job);
  return job;
}

describe('LockRenewal', () => {
  it('a turn of the event loop in which no timer fires -> the locks are renewed between two jobs, when they are due', () => {
    const renewed: string[][] = [];
    extendLocks = async (ids) => {
      renewed.push(ids);
      return [];
    };
    hold('one');
    nowMs += 0.37 * lockMs;
    renewal.renewIfLate();
    expect(renewed).toEqual([]);
    const second = hold('two');
    nowMs += 0.01 * lockMs;
    renewal.renewIfLate();
    renewal.renewIfLate();
    expect(renewed).toEqual([['one', 'two']]);
    second.holdsLock = false;
    hold('three');
    nowMs += 0.38 * lockMs;
    renewal.renewIfLate();
    expect(renewed[1]).toEqual(['one', 'three']);
  });

  it('locks that the store does not renew -> their jobs are lost, but none that has just ended', async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const [ended, running] = [hold('ended'), hold('running')];
    ended.end(undefined);
    renewal.start();
    extendLocks = async () => ['ended', 'running'];
    await vi.advanceTimersByTimeAsync(lockMs / 4);
    expect([ended.signal.reason, running.signal.reason]).toEqual([undefined, expect.any(LockLost)]);
    expect([ended.holdsLock, running.holdsLock]).toEqual([false, false]);
    expect(logged.lines).toMatchObject([{ msg: 'jobs lost to another worker', jobIds: ['running'] }]);
  });
});
