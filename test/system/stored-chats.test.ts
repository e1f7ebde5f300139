import { randomUUID } from 'node:crypto';
import type { Queue } from 'bullmq';
import { afterEach, describe, expect, inject, it, vi } from 'vitest';
import type { ChildProgram } from '../../dev/child-program.js';
import { parseConfig } from '../../shared/config/config.js';
import {
  type ChatJobPayload,
  encodeChatJob,
  queueName,
  resultMessageSchema,
  topics,
} from '../../shared/protocol/messages.js';
import { decodeOutcome, type Outcome } from '../../shared/protocol/outcome.js';
import { decodeStoredResult, encodeStoredResult, resultKey } from '../../shared/protocol/stored-chat.js';
import type { QueueStore } from '../../shared/queue/queue-store.js';
import { openRelay, type Relay } from '../../shared/queue/relay.js';
import { openQueueStore } from '../../shared/queue/stores/open.js';
import { type Deployment, startDeployment } from '../support/deployment.js';
import { patience, patienceMs } from '../support/patience.js';
import { createRecordingLog } from '../support/recording-log.js';

let deployment: Deployment;
let store: QueueStore;
let queue: Queue<ChatJobPayload>;
let relay: Relay;
/** What every API process hears of stored chats. */
let told: { jobId: string; outcome?: string | undefined }[];

const start = async (workers = 1) => {
  const variables = { WORKER_LOCK_MS: '2000', WORKER_STALLED_CHECK_MS: '500' };
  deployment = await startDeployment({ store: inject('store'), workers, variables });
  const { log } = createRecordingLog();
  store = openQueueStore(parseConfig(deployment.stores, 'migrate'), log);
  // Its commands fail until it is connected.
  expect(await store.whenReady(AbortSignal.timeout(patienceMs))).toBe(true);
  queue = store.createQueue(queueName('openai'));
  relay = await openRelay(store, { name: 'another-api', log });
  told = [];
  await relay.subscribe(
    topics.storedResult,
    resultMessageSchema,
    ({ settled }) => void told.push(...settled),
  );
};
afterEach(async () => {
  await relay.close();
  await queue.close();
  await store.close();
  await deployment.stop();
});

const cancelled: Outcome = { kind: 'cancelled', queueMs: 0, providerMs: 0 };
const later = () => Date.now() + 60_000;

async function add(model: string, change: Partial<ChatJobPayload> = {}): Promise<string> {
  const id = randomUUID();
  const job = encodeChatJob({
    v: 1,
    provider: 'openai',
    model,
    turns: [{ role: 'user', content: 'Hello' }],
    deadline: later(),
    replyTo: 'nobody',
    keptUntil: later(),
  });
  await queue.add('chat', { ...job, ...change }, { jobId: id });
  return id;
}

const record = (id: string, outcome: Outcome) =>
  store.records.create(resultKey(id), { value: encodeStoredResult(outcome, 1), ttlMs: 60_000 });

const recorded = async (id: string): Promise<Outcome | undefined> => {
  const text = await store.records.read(resultKey(id));
  return text === undefined ? undefined : decodeStoredResult(text).outcome;
};

const toldOf = (id: string) => vi.waitUntil(() => told.find(({ jobId }) => jobId === id), patience);

const callOf = (model: string) => deployment.simulator.waitForCall((call) => call.model === model);

async function kill(worker: ChildProgram | undefined): Promise<void> {
  if (worker === undefined) throw new Error('no such worker');
  process.kill(worker.pid, 'SIGKILL');
  await worker.exitCode;
}

describe('a worker with a stored chat', () => {
  it('records the answer, and then tells every API process of it', async () => {
    await start();
    const id = await add('sim-echo');
    expect(await toldOf(id)).toEqual({ jobId: id });
    const outcome = await recorded(id);
    expect(outcome).toMatchObject({ kind: 'ok', text: expect.stringContaining('Hello') });
    expect(decodeOutcome((await queue.getJob(id))?.returnvalue)).toEqual(outcome);
  });

  it('makes no call for one that was cancelled while its worker died', async () => {
    await start();
    const id = await add('sim-hang@taken-over');
    const { id: since } = await callOf('sim-hang@taken-over');
    await kill(deployment.workers[0]);
    await record(id, cancelled);
    await deployment.startWorker();
    await toldOf(id);
    expect(decodeOutcome((await queue.getJob(id))?.returnvalue)).toEqual(cancelled);
    expect(deployment.simulator.calls.list({ since })).toEqual([]);
  });

  it('records that the job broke', async () => {
    await start();
    const id = await add('sim-echo', { turns: 'no JSON' });
    expect(await toldOf(id)).toEqual({ jobId: id });
    expect(await recorded(id)).toMatchObject({ kind: 'failed', code: 'internal' });
  });

  it('records that the job was given up, having taken two workers down', async () => {
    await start();
    const id = await add('sim-hang@deadly');
    const { id: first } = await callOf('sim-hang@deadly');
    await kill(deployment.workers[0]);
    const second = await deployment.startWorker();
    await deployment.simulator.waitForCall((call) => call.id > first);
    await kill(second);
    await deployment.startWorker();
    await toldOf(id);
    expect(await recorded(id)).toMatchObject({ kind: 'failed', code: 'internal' });
  });

  it('records and tells nothing of an ordinary job', async () => {
    await start();
    expect((await deployment.chat({})).status).toBe(200);
    const jobs = await queue.getCompleted();
    expect(jobs).toHaveLength(1);
    for (const job of jobs) expect(await recorded(job.id ?? '')).toBeUndefined();
    await toldOf(await add('sim-echo'));
    expect(told).toHaveLength(1);
  });
});
