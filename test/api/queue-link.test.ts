import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openQueueLink, type QueueLink } from '../../api/queue-link.js';
import { createWaitingRoom } from '../../api/waiting-room.js';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../dev/postgres/embedded-postgres.js';
import { parseConfig } from '../../shared/config.js';
import { queueName, topics } from '../../shared/messages.js';
import { encodeOutcome, type Outcome } from '../../shared/outcome.js';
import { migrateQueueStore, openQueueStore, type QueueStore } from '../../shared/queue.js';
import { openTelegraph } from '../../shared/relay.js';
import { createRecordingLog } from '../support/recording-log.js';
import { openWire, type Wire } from '../support/wire.js';

const dataDir = mkdtempSync(join(tmpdir(), 'quillgate-test-'));
const waitingRoom = createWaitingRoom();
const { log } = createRecordingLog();
let postgres: EmbeddedPostgres;
let wire: Wire;
let store: QueueStore;
let link: QueueLink;

beforeAll(async () => {
  postgres = await startEmbeddedPostgres({ dataDir });
  const url = new URL(postgres.url);
  await migrateQueueStore(parseConfig({ DATABASE_URL: url.href }, 'migrate'));
  wire = await openWire(Number(url.port));
  url.port = String(wire.port);
  store = openQueueStore(parseConfig({ DATABASE_URL: url.href }, 'migrate'), log);
  await store.whenReady(AbortSignal.timeout(5000));
  link = await openQueueLink({ store, waitingRoom, log });
});
afterAll(async () => {
  await link.close();
  await store.close();
  await wire.close();
  await postgres.stop();
  rmSync(dataDir, { recursive: true });
});

const job = { provider: 'openai', turns: [{ role: 'user', content: 'Hi' }] } as const;
const ok: Outcome = { kind: 'ok', text: 'Hello', model: 'm', queueMs: 1, providerMs: 1 };
const later = () => Date.now() + 10_000;
const add = (jobId: string) => link.add(jobId, { ...job, turns: [...job.turns], deadline: later() });

describe('openQueueLink', () => {
  it('finds the outcome in the record when nobody tells of it', async () => {
    const outcome = waitingRoom.wait({ jobId: 'untold', provider: 'openai' }, later());
    await add('untold');
    const worker = store.createWorker(queueName('openai'), async () => encodeOutcome(ok), {});
    expect(await outcome).toEqual(ok);
    expect(await link.readOutcome('openai', 'untold')).toEqual(ok);
    await worker.close();
  });

  it('takes an outcome that it cannot read for internal, and goes on with the others of the message', async () => {
    const jobs = ['odd', 'even'].map((jobId) => waitingRoom.wait({ jobId, provider: 'bedrock' }, later()));
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
    const telegraph = await openTelegraph(store, { name: 'test', log });
    await telegraph.publish(topics.reply(await told.promise), {
      v: 1,
      settled: [
        { jobId: 'odd', outcome: '{"kind":"unheard of"}' },
        { jobId: 'even', outcome: encodeOutcome(ok) },
      ],
    });
    expect(await Promise.all(jobs)).toEqual([expect.objectContaining({ code: 'internal' }), ok]);
    await telegraph.close();
    await worker.close();
  });

  it('fails to add a job within three seconds when the store falls silent', async () => {
    wire.freeze();
    const startedAt = performance.now();
    await expect(add('silent')).rejects.toThrow();
    expect(performance.now() - startedAt).toBeLessThan(3000);
    wire.thaw();
  });
});
