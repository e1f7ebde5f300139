import type { Job } from 'bullmq';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { LockLost } from '../../../workers/gate/ends.js';
import { RunningJobs } from '../../../workers/job/running-jobs.js';
import { LockRenewal } from '../../../workers/pool/lock-renewal.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { takeJob } from '../../support/running-jobs.js';

let renewal: LockRenewal;
let worker: ConstructorParameters<typeof LockRenewal>[0]['worker'];
/** Ends the job that is processed. */
let processed: PromiseWithResolvers<void>;
let jobs: RunningJobs;
let logged: ReturnType<typeof createRecordingLog>;
const lockMs = 60_000;
let nowMs = 0;

beforeEach(() => {
  processed = Promise.withResolvers();
  jobs = new RunningJobs();
  logged = createRecordingLog();
  worker = { processJob: () => processed.promise, extendJobLocks: async () => [] };
  renewal = new LockRenewal({
    ...{ worker, jobs, provider: 'openai', lockMs, log: logged.log, now: () => nowMs },
    describe: ({ id = '' }, token) => takeJob({ id, token }),
  });
});
afterEach(() => renewal.stop());

const lost = expect.any(LockLost);
const take = (id: string, token: string) => worker.processJob({ id } as Job, token);
const held = () => [...jobs.ofPool('openai')].filter(({ holdsLock }) => holdsLock).map(({ token }) => token);

describe('LockRenewal', () => {
  it('a turn of the event loop in which no timer fires -> the locks are renewed between two jobs, when they are due', async () => {
    const renewed: string[][] = [];
    worker.extendJobLocks = async (ids) => {
      renewed.push(ids);
      return [];
    };
    const taken = [take('one', 'a')];
    nowMs += 0.37 * lockMs;
    taken.push(take('two', 'b'));
    expect(renewed).toEqual([]);
    nowMs += 0.01 * lockMs;
    renewal.renewIfLate();
    renewal.renewIfLate();
    expect(renewed).toEqual([['one', 'two']]);
    nowMs += 0.38 * lockMs;
    taken.push(take('three', 'c'));
    expect(renewed[1]).toEqual(['one', 'two', 'three']);
    processed.resolve();
    await Promise.all(taken);
  });

  it('a job that BullMQ is done with -> its lock is no longer renewed, also if the store took no end', async () => {
    const taken = take('one', 'a');
    expect(held()).toEqual(['a']);
    processed.reject(new Error('the store takes neither an outcome nor a failure'));
    await expect(taken).rejects.toThrow('neither');
    expect(held()).toEqual([]);
  });

  it('a job that is taken again -> its lock was lost before', async () => {
    const taken = [take('one', 'a'), take('one', 'b')];
    expect(held()).toEqual(['b']);
    expect(jobs.ofChat('one').map(({ signal }) => signal.reason)).toEqual([lost, undefined]);
    processed.resolve();
    await Promise.all(taken);
    expect(held()).toEqual([]);
  });

  it('locks that the store does not renew -> their jobs are lost, but none that has just ended', async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const taken = [take('ended', 'a'), take('running', 'b')];
    const [ended, running] = [...jobs.ofPool('openai')];
    ended?.end(undefined);
    renewal.start();
    worker.extendJobLocks = async () => ['ended', 'running'];
    await vi.advanceTimersByTimeAsync(lockMs / 4);
    expect([ended?.signal.reason, running?.signal.reason]).toEqual([undefined, lost]);
    expect(logged.lines).toMatchObject([{ msg: 'jobs lost to another worker', jobIds: ['running'] }]);
    processed.resolve();
    await Promise.all(taken);
  });
});
