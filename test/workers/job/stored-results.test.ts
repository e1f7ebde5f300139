import { beforeEach, describe, expect, it } from 'vitest';
import { Failure } from '../../../shared/failures.js';
import { brokenOutcome, type Outcome } from '../../../shared/protocol/outcome.js';
import { decodeStoredResult, encodeStoredResult, resultKey } from '../../../shared/protocol/stored-chat.js';
import { Cancelled, LockLost } from '../../../workers/gate/gated-call.js';
import { StoredResults } from '../../../workers/job/stored-results.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { takeJob } from '../../support/running-jobs.js';

const outcome: Outcome = { kind: 'ok', text: 'canary \u0000🎉', model: 'm', queueMs: 1, providerMs: 2 };
const other: Outcome = { kind: 'cancelled', queueMs: 0, providerMs: 0 };

let logged: ReturnType<typeof createRecordingLog>;
let stop: AbortController;
/** The store: its only record, how many more calls fail, and when one has. */
let stored: { value: string; ttlMs: number } | undefined;
let failing: number;
let failed: PromiseWithResolvers<void>;
beforeEach(() => {
  logged = createRecordingLog();
  stop = new AbortController();
  [stored, failing, failed] = [undefined, 0, Promise.withResolvers()];
});

async function answer(): Promise<void> {
  failing -= 1;
  if (failing < 0) return;
  failed.resolve();
  throw new Error('the store is down');
}
const records = {
  read: async (key: string) => {
    await answer();
    expect(key).toBe(resultKey('job'));
    return stored?.value;
  },
  create: async (key: string, record: { value: string; ttlMs: number }) => {
    await answer();
    expect(key).toBe(resultKey('job'));
    const isFirst = stored === undefined;
    stored ??= record;
    return isFirst;
  },
};
/** The results of a chat whose time is 1,000. */
function open({ keptUntil = 61_000, timeoutMs = 10_000 } = {}) {
  const results = new StoredResults({ records, log: logged.log, now: () => 1000, timeoutMs });
  const job = takeJob({ data: { keptUntil }, stop: stop.signal });
  return {
    find: (deadline = 2000) => results.find(job, deadline),
    record: (ended: Outcome) => results.record(job, ended),
  };
}
const levels = () => logged.lines.map(({ level }) => level);

describe('the results of stored chats', () => {
  it('a chat that has not ended, or elsewhere -> nothing is found, or what another has recorded', async () => {
    expect(await open().find()).toBeUndefined();
    stored = { value: encodeStoredResult(outcome, 1), ttlMs: 1 };
    expect(await open().find()).toEqual(outcome);
    expect(logged.lines).toEqual([]);
  });

  it('a record that cannot be read -> counts as an end', async () => {
    stored = { value: JSON.stringify({ v: 5, canary: 'canary' }), ttlMs: 1 };
    expect(await open().find()).toEqual(brokenOutcome);
    expect(await open().record(outcome)).toEqual(brokenOutcome);
    expect(logged.text()).not.toContain('canary');
  });

  it('an outcome -> recorded for as long as the chat is stored, every character of it; the first one counts', async () => {
    expect(await open().record(outcome)).toEqual(outcome);
    expect(decodeStoredResult(stored?.value ?? '')).toEqual({ v: 1, at: 1000, outcome });
    expect(stored?.ttlMs).toBe(60_000);
    expect(await open().record(other)).toEqual(outcome);
    stored = undefined;
    expect(await open({ keptUntil: 999 }).record(outcome)).toEqual(outcome);
    expect(stored).toMatchObject({ ttlMs: 1 });
    expect(logged.lines).toEqual([]);
  });

  it.each([
    ['is back -> it is asked again', undefined],
    ['may be back when the job is cancelled -> asked once more', new Cancelled()],
    ['may be back when the job is ended -> asked once more', new Failure('provider_unavailable')],
  ])('a store that was down and %s', async (_, reason) => {
    failing = 1;
    const recording = open({ timeoutMs: 60_000 }).record(outcome);
    await failed.promise;
    if (reason) stop.abort(reason);
    expect(await recording).toEqual(outcome);
    expect(decodeStoredResult(stored?.value ?? '').outcome).toEqual(outcome);
    expect(logged.lines).toEqual([]);
  });

  it('a store that stays down -> the outcome at the deadline at the latest, and a line without it', async () => {
    failing = Number.POSITIVE_INFINITY;
    expect(await open({ timeoutMs: 0 }).record(outcome)).toEqual(outcome);
    expect(await open({ timeoutMs: 0 }).find()).toBeUndefined();
    // It is back too late, after two tries.
    [stored, failing] = [{ value: encodeStoredResult(outcome, 1), ttlMs: 1 }, 2];
    expect(await open().find(1000)).toBeUndefined();
    expect(levels()).toEqual([40, 40, 40]);
    expect(logged.text()).not.toContain('canary');
  });

  it('a store that stays down, and a job that is cancelled -> it is not waited for', async () => {
    failing = Number.POSITIVE_INFINITY;
    const recording = open({ timeoutMs: 60_000 }).record(outcome);
    await failed.promise;
    stop.abort(new Cancelled());
    expect(await recording).toEqual(outcome);
    expect(levels()).toEqual([40]);
  });

  it('a job that was lost, before or while the store was waited for -> nothing of it is written', async () => {
    failing = 1;
    const recording = open({ timeoutMs: 60_000 }).record(outcome);
    await failed.promise;
    const lost = new LockLost();
    stop.abort(lost);
    await expect(recording).rejects.toBe(lost);
    await expect(open().record(outcome)).rejects.toBe(lost);
    await expect(open().find()).rejects.toBe(lost);
    expect([stored, logged.lines]).toEqual([undefined, []]);
  });

  it('an ordinary job -> the store is not asked', async () => {
    failing = 2;
    const results = new StoredResults({ records, log: logged.log, now: () => 1000 });
    expect(await results.find(takeJob(), 2000)).toBeUndefined();
    expect(await results.record(takeJob(), outcome)).toBe(outcome);
    expect(failing).toBe(2);
  });
});
