import type { Queue } from 'bullmq';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { Cancellation } from '../../../api/fleet-link/cancellation.js';
import { queueName, topics } from '../../../shared/protocol/messages.js';
import { nameOfTexts, writeBlob } from '../../../shared/queue/blobs.js';
import type { QueueStore } from '../../../shared/queue/queue-store.js';
import { noLedger } from '../../support/entries.js';
import { apiInstruments } from '../../support/metrics.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { createRecordingRelay, type RecordingRelay } from '../../support/recording-relay.js';
import { openSharedStore, type SharedStore } from '../../support/shared-store.js';
import { storeOf } from '../../support/stores.js';

const { log } = createRecordingLog();
let shared: SharedStore;
let store: QueueStore;
let queue: Queue;
let relay: RecordingRelay;
let cancellation: Cancellation;

beforeAll(async () => {
  shared = await openSharedStore(storeOf('postgres'), log);
  store = shared.store;
  queue = store.createQueue(queueName('openai'));
});
afterAll(async () => {
  await queue?.close();
  await shared?.stop();
});
beforeEach(() => {
  relay = createRecordingRelay();
  const { metrics } = apiInstruments;
  cancellation = new Cancellation({ queueOf: () => queue, store, relay, metrics, ledger: noLedger, log });
});

const storedJob = (jobId: string) => ({ jobId, provider: 'openai', isStored: true }) as const;
const add = (jobId: string) => queue.add('chat', {}, { jobId });
/** Adds the job, and has a worker do it. */
const complete = async (jobId: string) => {
  const worker = store.createWorker(queueName('openai'), async () => 'done', {});
  const completed = new Promise((resolve) => worker.once('completed', resolve));
  await add(jobId);
  await completed;
  await worker.close();
};
const messagesFor = (...jobIds: string[]) => [
  { topic: topics.cancel('openai'), message: { v: 1, jobIds } },
  { topic: topics.storedResult, message: { v: 1, settled: jobIds.map((jobId) => ({ jobId })) } },
];

describe('a job whose add is unconfirmed, and that is cancelled', () => {
  it('has a store that takes no message -> the cancel is published again until it does', async () => {
    const publish = vi.spyOn(relay, 'publish').mockRejectedValueOnce(new Error('away'));
    cancellation.cancelUnconfirmed({ jobId: 'refused', provider: 'openai' });
    await cancellation.flush();
    expect(relay.published).toEqual([]);
    const [first] = await relay.publishedAtLeast(1);
    expect(first).toEqual({ topic: topics.cancel('openai'), message: { v: 1, jobIds: ['refused'] } });
    expect(publish).toHaveBeenCalledTimes(2);
    publish.mockRestore();
  });

  it('was taken by the store all the same -> is removed', async () => {
    await add('taken');
    cancellation.cancelUnconfirmed({ jobId: 'taken', provider: 'openai' });
    await cancellation.flush();
    expect(await queue.getJob('taken')).toBeUndefined();
  });
});

describe('a stored chat that is cancelled', () => {
  it('is one of several at once -> there is one message to the pools, and one to the API', async () => {
    const jobIds = ['one', 'two', 'three'];
    await Promise.all(jobIds.map(add));
    for (const jobId of jobIds) cancellation.cancel(storedJob(jobId));
    await cancellation.flush();
    expect(relay.published).toEqual(messagesFor(...jobIds));
    expect(await queue.getWaitingCount()).toBe(0);
  });

  it('is asked for by many at once -> happens once', async () => {
    await add('cancelled-often');
    for (let n = 0; n < 10; n += 1) cancellation.cancel(storedJob('cancelled-often'));
    await cancellation.flush();
    expect(relay.published).toEqual(messagesFor('cancelled-often'));
  });

  it('is gone or has ended -> nothing, until it is there again', async () => {
    await complete('ended');
    cancellation.cancel(storedJob('ended'));
    cancellation.cancel({ ...storedJob('gone'), fallback: [{ provider: 'bedrock' }] });
    await cancellation.flush();
    expect(relay.published).toEqual([]);
    expect(await queue.getJobState('ended')).toBe('completed');
    await add('gone');
    cancellation.cancel(storedJob('gone'));
    await cancellation.flush();
    expect(relay.published).toEqual(messagesFor('gone'));
  });

  it('waits with texts beside its job -> they leave with it', async () => {
    const texts = { sha256: 'digest', bytes: 300_000 };
    const name = nameOfTexts({ id: 'long', user: 'me' }, texts);
    await writeBlob(store.blobs, name, { bytes: Buffer.alloc(texts.bytes), ttlMs: () => 3_600_000 });
    await queue.add('chat', { user: 'me', texts }, { jobId: 'long' });
    cancellation.cancel(storedJob('long'));
    await cancellation.flush();
    expect(await store.blobs.read(name, { chunks: 2 })).toEqual([undefined, undefined]);
  });

  it('was passed on after it was read -> is cancelled where it is', async () => {
    await complete('moved');
    await add('moved-2');
    cancellation.cancel({ ...storedJob('moved'), fallback: [{ provider: 'bedrock' }] });
    await cancellation.flush();
    expect(relay.published).toContainEqual({
      topic: topics.cancel('bedrock'),
      message: { v: 1, jobIds: ['moved'] },
    });
    expect(await queue.getJob('moved-2')).toBeUndefined();
  });
});
