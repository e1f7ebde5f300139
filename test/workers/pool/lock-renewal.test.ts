import type { Job } from 'bullmq';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LockRenewal } from '../../../workers/pool/lock-renewal.js';
import { createRecordingLog } from '../../support/recording-log.js';

let renewal: LockRenewal;
let worker: ConstructorParameters<typeof LockRenewal>[0]['worker'];
/** Ends the job that is processed. */
let processed: PromiseWithResolvers<void>;
let lost: [string, string][];

beforeEach(() => {
  processed = Promise.withResolvers();
  lost = [];
  worker = { processJob: () => processed.promise, extendJobLocks: async () => [] };
  const onLost = (locks: ReadonlyMap<string, string>) => {
    lost.push(...locks);
    return [];
  };
  renewal = new LockRenewal({ worker, lockMs: 60_000, onLost, log: createRecordingLog().log });
});
afterEach(() => renewal.stop());

const take = (id: string, token: string) => worker.processJob({ id } as Job, token);

describe('LockRenewal', () => {
  it('renews a lock no more once BullMQ is done with its job, whatever has become of the end', async () => {
    const taken = take('one', 'a');
    expect([...renewal.jobIds]).toEqual(['one']);
    processed.reject(new Error('the store takes neither an outcome nor a failure'));
    await expect(taken).rejects.toThrow('neither');
    expect([...renewal.jobIds]).toEqual([]);
  });

  it('takes the lock of a job for lost that is taken again', async () => {
    const taken = [take('one', 'a'), take('one', 'b')];
    expect(lost).toEqual([['one', 'a']]);
    renewal.release('one', 'a');
    expect([...renewal.jobIds]).toEqual(['one']);
    processed.resolve();
    await Promise.all(taken);
    expect([...renewal.jobIds]).toEqual([]);
  });
});
