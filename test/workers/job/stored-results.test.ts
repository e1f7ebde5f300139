import { randomUUID } from 'node:crypto';
import { beforeEach, expect, it, vi } from 'vitest';
import { brokenOutcome, type Outcome } from '../../../shared/protocol/outcome.js';
import { decodeStoredResult, encodeStoredResult, resultKey } from '../../../shared/protocol/stored-chat.js';
import type { RecordStore } from '../../../shared/queue/queue-store.js';
import { Cancelled } from '../../../workers/gate/ends.js';
import { StoredResults } from '../../../workers/job/stored-results.js';
import { patience, patienceMs } from '../../support/patience.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { takeJob } from '../../support/running-jobs.js';
import { describeStores } from '../../support/shared-store.js';

const outcome: Outcome = { kind: 'ok', text: 'canary \u0000🎉', model: 'm', queueMs: 1, providerMs: 2 };
const other: Outcome = { kind: 'cancelled', queueMs: 0, providerMs: 0 };
const ttlMs = 60_000;
type Records = Pick<RecordStore, 'create' | 'read'>;
/** In milliseconds since the epoch. */
const later = () => Date.now() + ttlMs;

describeStores('stored results in $kind', createRecordingLog().log, (shared) => {
  let logged: ReturnType<typeof createRecordingLog>;
  let stop: AbortController;
  let id: string;
  let isCut = false;

  const cut = async () => {
    isCut = true;
    await shared.wire.cut();
  };
  const mend = async () => {
    if (isCut) await shared.wire.mend();
    isCut = false;
    expect(await shared.store.whenReady(AbortSignal.timeout(patienceMs))).toBe(true);
  };

  beforeEach(() => {
    logged = createRecordingLog();
    stop = new AbortController();
    id = randomUUID();
    return mend;
  });

  const open = ({
    expiresAt = later(),
    timeoutMs = 10_000,
    records = shared.store.records as Records,
  } = {}) => {
    const results = new StoredResults({ records, log: logged.log, timeoutMs });
    const job = takeJob({ id, data: { keptUntil: expiresAt }, stop: stop.signal });
    return {
      find: (deadline: number) => results.find(job, deadline),
      record: (ended: Outcome) => results.record(job, ended),
    };
  };
  const recorded = async () => {
    const text = await shared.another.records.read(resultKey(id));
    return text === undefined ? undefined : decodeStoredResult(text);
  };
  const record = (value: string) => shared.another.records.create(resultKey(id), { value, ttlMs });
  const levels = () => logged.lines.map(({ level }) => level);

  /** The records of the store, and when a call to them has failed. */
  const watched = () => {
    const { promise: failed, resolve } = Promise.withResolvers<void>();
    const { read, create } = shared.store.records;
    const watch = <T>(call: Promise<T>): Promise<T> => {
      call.catch(() => resolve());
      return call;
    };
    const records = {
      read: (key: string) => watch(read(key)),
      create: (...record: Parameters<typeof create>) => watch(create(...record)),
    };
    return { records, failed };
  };

  it('finds nothing of a chat that has not ended, and what another has recorded', async () => {
    expect(await open().find(later())).toBeUndefined();
    await record(encodeStoredResult(outcome, 1));
    expect(await open().find(later())).toEqual(outcome);
    expect(logged.lines).toEqual([]);
  });

  it('takes a record that it cannot read for an end', async () => {
    await record(JSON.stringify({ v: 3, canary: 'canary' }));
    expect(await open().find(later())).toEqual(brokenOutcome);
    expect(await open().record(outcome)).toEqual(brokenOutcome);
    expect(logged.text()).not.toContain('canary');
  });

  it('records the outcome, every character of it, and when; the first one counts', async () => {
    const before = Date.now();
    expect(await open().record(outcome)).toEqual(outcome);
    const found = await recorded();
    expect(found).toEqual({ v: 1, at: expect.any(Number), outcome });
    expect(found?.at).toBeGreaterThanOrEqual(before);
    expect(await open().record(other)).toEqual(outcome);
    expect(await recorded()).toEqual(found);
  });

  it('records for as long as the chat is stored, and fails for none that has expired', async () => {
    await open({ expiresAt: Date.now() + 100 }).record(outcome);
    await vi.waitUntil(async () => (await recorded()) === undefined, patience);
    expect(await open({ expiresAt: Date.now() - 1 }).record(outcome)).toEqual(outcome);
    expect(logged.lines).toEqual([]);
  });

  it('waits for a store that is unavailable for a while', async () => {
    await cut();
    const { records, failed } = watched();
    const recording = open({ records }).record(outcome);
    await failed;
    await mend();
    expect(await recording).toEqual(outcome);
    expect((await recorded())?.outcome).toEqual(outcome);
    expect(logged.lines).toEqual([]);
  });

  it('returns the outcome also when the store stays unavailable, at the deadline at the latest, and logs only that', async () => {
    await cut();
    const storedResult = open({ timeoutMs: 0 });
    expect(await storedResult.record(outcome)).toEqual(outcome);
    expect(await storedResult.find(later())).toBeUndefined();
    expect(await open().find(Date.now())).toBeUndefined();
    expect(levels()).toEqual([40, 40, 40]);
    expect(logged.text()).not.toContain('canary');
  });

  it('does not wait for a store once the job is aborted', async () => {
    await cut();
    const { records, failed } = watched();
    const recording = open({ records, timeoutMs: ttlMs }).record(outcome);
    await failed;
    stop.abort(new Cancelled());
    expect(await recording).toEqual(outcome);
    expect(levels()).toEqual([40]);
  });

  it('tries once more when the job is aborted while it waits for the store', async () => {
    const { records } = shared.store;
    const isDown = vi.fn(records.create).mockRejectedValueOnce(new Error('down'));
    const recording = open({ records: { ...records, create: isDown }, timeoutMs: ttlMs }).record(outcome);
    await vi.waitFor(() => expect(isDown).toHaveBeenCalled(), patience);
    stop.abort(new Cancelled());
    expect(await recording).toEqual(outcome);
    expect((await recorded())?.outcome).toEqual(outcome);
    expect(logged.lines).toEqual([]);
  });

  it('writes nothing of a job that was lost, before or while it waits for the store', async () => {
    const lost = new Error('lost');
    await cut();
    const { records, failed } = watched();
    const recording = open({ records, timeoutMs: ttlMs }).record(outcome);
    await failed;
    stop.abort(lost);
    await expect(recording).rejects.toBe(lost);
    await mend();
    await expect(open().record(outcome)).rejects.toBe(lost);
    await expect(open().find(later())).rejects.toBe(lost);
    expect(await recorded()).toBeUndefined();
    expect(logged.lines).toEqual([]);
  });
});

it('has nothing to do with an ordinary job', async () => {
  const { log } = createRecordingLog();
  const untouched = () => Promise.reject(new Error('touched'));
  const results = new StoredResults({ records: { read: untouched, create: untouched }, log });
  expect(await results.find(takeJob(), later())).toBeUndefined();
  expect(await results.record(takeJob(), outcome)).toBe(outcome);
});
