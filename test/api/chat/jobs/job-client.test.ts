import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type JobClient, openJobClient } from '../../../../api/chat/jobs/job-client.js';
import { watchJobResults } from '../../../../api/chat/jobs/job-results.js';
import { createPendingReplies } from '../../../../api/chat/jobs/pending-replies.js';
import { parseConfig } from '../../../../shared/config/config.js';
import { queueName, topics } from '../../../../shared/protocol/messages.js';
import { encodeOutcome, type Outcome } from '../../../../shared/protocol/outcome.js';
import { encodeStoredResult, resultKey } from '../../../../shared/protocol/stored-chat.js';
import type { QueueStore } from '../../../../shared/queue/queue-store.js';
import { openRelay } from '../../../../shared/queue/relay.js';
import { migrateQueueStore, openQueueStore } from '../../../../shared/queue/stores/open.js';
import { startEmptyDatabase, type TestDatabase } from '../../../support/database.js';
import { withLag } from '../../../support/lateness.js';
import { apiInstruments } from '../../../support/metrics.js';
import { patience, patienceMs } from '../../../support/patience.js';
import { createRecordingLog } from '../../../support/recording-log.js';
import { openWire, type Wire } from '../../../support/wire.js';

const pendingReplies = createPendingReplies();
const { log } = createRecordingLog();
let postgres: TestDatabase;
let wire: Wire;
let store: QueueStore;
let link: JobClient;

beforeAll(async () => {
  postgres = await startEmptyDatabase();
  const url = new URL(postgres.url);
  await migrateQueueStore(parseConfig({ DATABASE_URL: url.href }, 'migrate'));
  wire = await openWire(Number(url.port));
  url.port = String(wire.port);
  store = openQueueStore(parseConfig({ DATABASE_URL: url.href }, 'migrate'), log);
  await store.whenReady(AbortSignal.timeout(patienceMs));
  link = await openJobClient({ store, pendingReplies, metrics: apiInstruments.metrics, log });
});
afterAll(async () => {
  await link.close();
  await store.close();
  await wire.close();
  await postgres.stop();
});

const job = { provider: 'openai', turns: [{ role: 'user', content: 'Hi' }] } as const;
const ok: Outcome = { kind: 'ok', text: 'Hello', model: 'm', queueMs: 1, providerMs: 1 };
const later = () => Date.now() + 10_000;
const add = (jobId: string) => link.add(jobId, { ...job, turns: [...job.turns], deadline: later() });

describe('openJobClient', () => {
  it('finds the outcome in the record when nobody tells of it', async () => {
    const outcome = pendingReplies.wait({ jobId: 'untold', provider: 'openai' }, later()).outcome;
    await add('untold');
    const worker = store.createWorker(queueName('openai'), async () => encodeOutcome(ok), {});
    expect(await outcome).toEqual(ok);
    const record = await link.read({ jobId: 'untold', provider: 'openai' });
    expect(record).toEqual({ state: 'settled', outcome: ok });
    await worker.close();
  });

  it('looks at the record of a stored chat when it is told that one has ended', async () => {
    const job = { jobId: 'kept', provider: 'openai', isStored: true } as const;
    const waiting = pendingReplies.wait(job, later());
    await store.records.create(resultKey('kept'), { value: encodeStoredResult(ok, 1000), ttlMs: 60_000 });
    const relay = await openRelay(store, { name: 'test', log });
    await relay.publish(topics.storedResult, { v: 1, settled: [{ jobId: 'kept' }] });
    expect(await waiting.outcome).toEqual(ok);
    expect(await link.read(job)).toEqual({ state: 'settled', outcome: ok, settledAt: 1000 });
    await relay.close();
  });

  it('says of a job that it is queued, or that it is not known', async () => {
    await link.add('queued', { ...job, provider: 'vertexai', turns: [...job.turns], deadline: later() });
    expect(await link.read({ jobId: 'queued', provider: 'vertexai' })).toEqual({ state: 'queued' });
    expect(await link.read({ jobId: 'unheard', provider: 'vertexai' })).toEqual({ state: 'unknown' });
  });

  it('lets a job that vanished be put back once its waiter should have been told of it', async () => {
    const vanished = Promise.withResolvers<number>();
    const startedAt = Date.now();
    const waiting = pendingReplies.wait({ jobId: 'gone', provider: 'openai' }, later());
    waiting.onLost(() => vanished.resolve(Date.now() - startedAt));
    expect(await vanished.promise).toBeGreaterThanOrEqual(100);
    waiting.leave();
  });

  it('looks at all records, also when one of them cannot be read', async () => {
    await store.records.create(resultKey('of-a-newer'), { value: '{"v":2}', ttlMs: 60_000 });
    const queue = store.createQueue(queueName('bedrock'));
    const jobRecords = watchJobResults({ queueOf: () => queue, store, pendingReplies, log });
    const lost = { jobId: 'lost', provider: 'bedrock', isStored: true } as const;
    expect(await jobRecords.look([{ ...lost, jobId: 'of-a-newer' }, lost])).toEqual([lost]);
    jobRecords.stop();
    await queue.close();
  });

  it('notes that it has seen the job of who waits', async () => {
    const seen = vi.spyOn(pendingReplies, 'seen');
    const startedAt = Date.now();
    const waiting = pendingReplies.wait({ jobId: 'seen', provider: 'vertexai' }, later());
    await link.add('seen', { ...job, provider: 'vertexai', turns: [...job.turns], deadline: later() });
    await vi.waitUntil(() => seen.mock.calls.length > 0, patience);
    const [jobId, at] = seen.mock.calls[0] ?? [];
    expect(jobId).toBe('seen');
    expect(at).toBeGreaterThanOrEqual(startedAt);
    seen.mockRestore();
    waiting.leave();
  });

  it('takes an outcome that it cannot read for internal, and goes on with the others of the message', async () => {
    const jobs = ['odd', 'even'].map(
      (jobId) => pendingReplies.wait({ jobId, provider: 'bedrock' }, later()).outcome,
    );
    const told = Promise.withResolvers<string>();
    const worker = store.createWorker(
      queueName('openai'),
      async ({ data }) => {
        told.resolve(data.replyTo);
        return encodeOutcome(ok);
      },
      {},
    );
    await add('to-learn-the-address');
    const relay = await openRelay(store, { name: 'test', log });
    await relay.publish(topics.reply(await told.promise), {
      v: 1,
      settled: [
        { jobId: 'odd', outcome: '{"kind":"unheard of"}' },
        { jobId: 'even', outcome: encodeOutcome(ok) },
      ],
    });
    expect(await Promise.all(jobs)).toEqual([expect.objectContaining({ code: 'internal' }), ok]);
    await relay.close();
    await worker.close();
  });

  it.each([true, false])(
    'reads no longer than three seconds when the store falls silent (kept: %s)',
    async (isStored) => {
      wire.freeze();
      const reading = link.read({ jobId: 'silent', provider: 'openai', isStored });
      expect(await msUntilFailed(reading)).toBeLessThan(3000);
      wire.thaw();
    },
  );

  it('fails to add a job within three seconds when the store falls silent', async () => {
    wire.freeze();
    expect(await msUntilFailed(add('silent'))).toBeLessThan(3000);
    wire.thaw();
  });
});

/** After how many milliseconds the work fails, less what the machine was late. */
async function msUntilFailed(work: Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  const { lagMs } = await withLag(() => expect(work).rejects.toThrow());
  return performance.now() - startedAt - lagMs;
}
