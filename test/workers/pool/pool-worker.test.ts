import { hash, randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import { parseConfig } from '../../../shared/config/config.js';
import { Failure } from '../../../shared/failures.js';
import { type ChatJob, encodeChatJob, queueName } from '../../../shared/protocol/messages.js';
import { decodeOutcome } from '../../../shared/protocol/outcome.js';
import { nameOfTexts, readTexts, writeBlob } from '../../../shared/queue/blobs.js';
import { closeQueues, openQueues, type Queues, queueOf } from '../../../shared/queue/channels.js';
import type { QueueStore } from '../../../shared/queue/queue-store.js';
import { DeltaPublisher } from '../../../workers/job/delta-publisher.js';
import { NextAttempts } from '../../../workers/job/next-attempt.js';
import { RunningJobs } from '../../../workers/job/running-jobs.js';
import { PoolWorker } from '../../../workers/pool/pool-worker.js';
import { classifyError } from '../../../workers/providers/errors/error-classification.js';
import type { Provider } from '../../../workers/providers/provider.js';
import { chatJobOf, poolSettings } from '../../support/chat-jobs.js';
import { noLedger } from '../../support/entries.js';
import { openGate } from '../../support/gate.js';
import { poolMetrics } from '../../support/metrics.js';
import { patience } from '../../support/patience.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { createRecordingRelay, type RecordingRelay } from '../../support/recording-relay.js';
import { takeJob } from '../../support/running-jobs.js';
import { describeStores } from '../../support/shared-store.js';

const logged = createRecordingLog();
const { log } = logged;
const provider: Provider = {
  id: 'openai',
  run: async () => ({ text: 'Hello', reason: 'stop', model: 'm' }),
  close: () => {},
};

const refused = classifyError(new Error('no'), { status: 400 });

describeStores('PoolWorker on $kind', log, (shared) => {
  let queue: ReturnType<QueueStore['createQueue']>;
  let queues: Queues;
  let open: ReturnType<typeof openGate>;
  let relay: RecordingRelay;
  let jobs: RunningJobs;
  let deltas: DeltaPublisher;
  let nextAttempts: NextAttempts;
  const closing: (() => Promise<void>)[] = [];

  beforeAll(() => {
    queue = shared.another.createQueue(queueName('openai'));
    queues = openQueues(shared.store);
    nextAttempts = new NextAttempts({ store: shared.store, queues, log });
  });
  afterAll(async () => {
    await queue?.close();
    if (queues) await closeQueues(queues);
  });
  beforeEach(() => {
    open = openGate();
    relay = createRecordingRelay();
    jobs = new RunningJobs();
    deltas = new DeltaPublisher({ jobs, relay, windowMs: 1, log });
  });
  afterEach(async () => {
    open.close();
    for (const close of closing.splice(0)) await close();
  });

  const start = async (ownProvider = provider) => {
    // No lock ends while a test runs.
    const variables = { DATABASE_URL: 'postgres://127.0.0.1/none', WORKER_LOCK_MS: '300000' };
    const worker = new PoolWorker({
      ...{
        store: shared.store,
        relay,
        jobs,
        deltas,
        nextAttempts,
        workerName: 'test',
        ...open,
        ledger: noLedger,
        log,
      },
      readTexts: ({ chatId }, job) =>
        readTexts(
          { blobs: shared.store.blobs, parse: async (text) => JSON.parse(String(text)) },
          chatId,
          job,
        ),
      provider: ownProvider,
      settings: { current: poolSettings({ concurrency: 2 }) },
      config: parseConfig(variables, 'config'),
      times: { meanMs: 0 },
      listeners: [],
      backlog: { forget: () => {}, recordEmpty: () => {} },
      metrics: poolMetrics,
    });
    closing.push(() => worker.close({ graceMs: 60_000 }));
    await worker.start();
    return worker;
  };
  const add = async (own: Partial<ChatJob> = {}) => {
    const jobId = randomUUID();
    await queue.add('chat', encodeChatJob(chatJobOf(own)), { jobId });
    return jobId;
  };
  const isCompleted = (...ids: string[]) =>
    vi.waitFor(async () => {
      const states = await Promise.all(ids.map((id) => queue.getJobState(id)));
      expect(new Set(states)).toEqual(new Set(['completed']));
    }, patience);

  const outcomeOf = async (id: string) => decodeOutcome((await queue.getJob(id))?.returnvalue);
  /** A worker takes the job, which waits for a hold until the worker closes. */
  const takeAndClose = async (jobId: string) => {
    open.gate.hold({ model: 'm', holdMs: 60_000 });
    const worker = await start();
    await vi.waitFor(() => expect(jobs.ofChat(jobId)).toHaveLength(1), patience);
    open.gate.close();
    await worker.close({ graceMs: 60_000 });
    open = openGate();
  };

  it('a worker that closes while its job waits for a hold -> the next worker has it, however often', async () => {
    const jobId = await add({ deadline: Date.now() + 3_600_000 });
    // More often than a job may be started that takes its workers down.
    for (let n = 0; n < 3; n += 1) {
      await takeAndClose(jobId);
      expect(await queue.getJobState(jobId)).toBe('waiting');
      expect(jobs.loadOf('openai').unsettled).toBe(0);
    }
    await start();
    await isCompleted(jobId);
    expect(await outcomeOf(jobId)).toMatchObject({ kind: 'ok', text: 'Hello' });
  });

  it('a restarted job whose dead worker has begun another attempt -> goes on there, and writes no stream', async () => {
    const deadline = Date.now() + 3_600_000;
    const chat = chatJobOf({ deadline, stream: true, fallback: [{ provider: 'anthropic' }] });
    const jobId = await add({ deadline });
    await takeAndClose(jobId);
    // One with a fallback does not wait for a hold.
    await (await queue.getJob(jobId))?.updateData(encodeChatJob(chat));
    const failed = { provider: 'openai', code: 'provider_error' } as const;
    await nextAttempts.begin(takeJob({ id: jobId }), chat, failed);
    const opened = vi.spyOn(deltas, 'open');
    await start({ ...provider, run: () => expect.unreachable() });
    await isCompleted(jobId);
    expect(await outcomeOf(jobId)).toMatchObject({ next: { provider: 'anthropic', attempt: 2 } });
    expect(opened).not.toHaveBeenCalled();
  });

  it.each([
    ['a reply before the store has it', provider, 1],
    // Where the lock was lost meanwhile, the store refuses it, and another worker may succeed.
    ['a failure once the store has taken it', { ...provider, run: () => Promise.reject(refused) }, 0],
  ])(
    'a job that ends -> publishes %s, once, and counts until its outcome is stored',
    async (_, ownProvider, publishedBefore) => {
      const during: number[] = [];
      const run: Provider['run'] = (...call) => {
        during.push(jobs.loadOf('openai').unsettled);
        return ownProvider.run(...call);
      };
      const worker = await start({ ...ownProvider, run });
      const ended = Promise.withResolvers<number>();
      worker.bullWorker.on('completed', () => ended.resolve(relay.published.length));
      const jobId = await add();
      expect(await ended.promise).toBe(publishedBefore);
      await relay.publishedAtLeast(1);
      await vi.waitFor(() => expect(jobs.ofChat(jobId)).toEqual([]), patience);
      await worker.close({ graceMs: 60_000 });
      expect(during).toEqual([1]);
      const outcome = (await queue.getJob(jobId))?.returnvalue;
      expect(relay.published).toEqual([
        { topic: 'reply.node', message: { v: 1, settled: [{ jobId, outcome }] } },
      ]);
    },
  );

  it('a job of a newer release -> left to a worker that can read it, however often, while its own go on', async () => {
    const worker = await start();
    const taken: (string | undefined)[] = [];
    worker.bullWorker.on('active', ({ id }) => taken.push(id));
    const newer = randomUUID();
    await queue.add('chat', { v: 5, turns: 'in a shape of its own' }, { jobId: newer });
    const own = await add();
    await isCompleted(own);
    // More often than a job may be started that takes its workers down.
    await vi.waitFor(() => expect(taken.filter((id) => id === newer).length).toBeGreaterThan(2), patience);
    await vi.waitFor(() => expect(jobs.loadOf('openai').unsettled).toBe(0), patience);
    await worker.close({ graceMs: 60_000 });
    expect(await queue.getJobState(newer)).toBe('delayed');
    expect(logged.text()).not.toContain('not requeued');

    const ofNewer = shared.store.createWorker(queueName('openai'), async ({ data }) => data.turns, {});
    closing.push(() => ofNewer.close());
    await isCompleted(newer);
    expect((await queue.getJob(newer))?.returnvalue).toBe('in a shape of its own');
  });

  it("the account refuses one user alone -> that user's job waits in the queue, and others are called", async () => {
    const denied = classifyError(new Error('no'), { status: 401 });
    const worker = await start({ ...provider, run: () => Promise.reject(denied) });
    await isCompleted(...(await Promise.all(Array.from({ length: 5 }, () => add({ user: 'M' })))));
    const job = await add({ user: 'M' });
    await vi.waitFor(async () => expect(await queue.getJobState(job)).toBe('delayed'), patience);
    await isCompleted(await add({ user: 'V' }));
    await worker.close({ graceMs: 60_000 });
    await queue.remove(job);
  });

  const word = 'context_length_exceeded';
  const refusal = classifyError(new TypeError('secret'), { status: 400, words: [word] });
  const limit = { ms: 300, setting: 'idleTimeoutMs', fellSilent: true } as const;
  const silent = new Failure('provider_timeout', { limit });
  it.each([
    ['without a reply -> one line says why', refusal, { code: word, error: 'TypeError', status: 400, word }],
    [
      'that a time limit ends -> the line has the limit and the variable that sets it',
      silent,
      { code: 'provider_timeout', limitMs: 300, variable: 'OPENAI_IDLE_TIMEOUT_MS' },
    ],
  ])('a job %s, without a stack', async (_, failure, facts) => {
    await start({ ...provider, run: () => Promise.reject(failure) });
    const jobId = await add();
    await isCompleted(jobId);
    const found = logged.lines.find((line) => line.msg === 'job failed' && line.jobId === jobId);
    const { time: _time, pid: _pid, hostname: _host, ...line } = found ?? {};
    expect(line).toEqual({ level: 40, msg: 'job failed', jobId, user: 'me', ...facts });
  });

  it('a job that fails unexpectedly -> is logged, and published where a caller waits for it', async () => {
    const worker = await start({ ...provider, run: () => Promise.reject(new TypeError('canary')) });
    const jobId = await add();
    const { message } = (await relay.publishedAtLeast(1))[0] ?? {};
    expect(message).toMatchObject({ settled: [{ jobId, outcome: expect.stringContaining('"internal"') }] });
    expect(JSON.stringify(message)).not.toContain('canary');

    const unreadable = new Promise((resolve) => worker.bullWorker.on('failed', resolve));
    const { id } = await queue.add('chat', null);
    await unreadable;
    const broke = logged.lines.filter(({ msg, level }) => msg === 'job broke' && level === 50);
    expect(broke.map((line) => line.jobId)).toEqual([jobId, id]);
    await vi.waitFor(() => expect(jobs.loadOf('openai').unsettled).toBe(0), patience);
    expect(relay.published).toHaveLength(1);
  });

  /** Texts of so many bytes for a chat, as its API process stores them. */
  const writeTexts = async (id: string, content: string, user = 'me') => {
    const text = Buffer.from(JSON.stringify({ turns: [{ role: 'user', content }] }));
    const texts = { sha256: hash('sha256', text, 'hex'), bytes: text.length };
    const name = nameOfTexts({ id, user }, texts);
    await writeBlob(shared.another.blobs, name, { bytes: text, ttlMs: () => 3_600_000 });
    const lie = async () => (await shared.another.blobs.read(name, { chunks: 1 }))[0] !== undefined;
    return { texts, name, lie };
  };
  const addWithTexts = async (jobId: string, own: Partial<ChatJob>) => {
    const payload = encodeChatJob(chatJobOf({ turns: undefined, deadline: Date.now() + 3_600_000, ...own }));
    await queue.add('chat', payload, { jobId });
  };
  const long = '雨'.repeat(500_000);

  it('texts beside a job -> are answered, and leave with its end; those of other chats and users stay', async () => {
    const [one, two, three] = [randomUUID(), randomUUID(), randomUUID()];
    const own = await writeTexts(one, long);
    const others = [await writeTexts(two, long), await writeTexts(three, long, 'other')];
    const asked: unknown[] = [];
    await start({
      ...provider,
      run: async ({ turns }) => {
        asked.push(turns);
        return { text: 'Hello', reason: 'stop', model: 'm' };
      },
    });
    await addWithTexts(one, { texts: own.texts });
    await isCompleted(one);
    expect(asked).toEqual([[{ role: 'user', content: long }]]);
    await vi.waitFor(async () => expect(await own.lie()).toBe(false), patience);
    expect(await Promise.all(others.map(({ lie }) => lie()))).toEqual([true, true]);
  });

  it('texts of which a chunk is gone -> a retryable internal, and no call', async () => {
    const id = randomUUID();
    const { texts, name } = await writeTexts(id, long);
    await shared.another.blobs.remove(name, { chunks: 1 });
    await start({ ...provider, run: () => expect.unreachable() });
    await addWithTexts(id, { texts });
    await isCompleted(id);
    expect(await outcomeOf(id)).toMatchObject({ kind: 'failed', code: 'internal', retryable: true });
  });

  it('a worker that closes with such a job, and a fallback after it -> they read the same texts', async () => {
    const id = randomUUID();
    const { texts, lie } = await writeTexts(id, long);
    await addWithTexts(id, { texts });
    await takeAndClose(id);
    expect(await lie()).toBe(true);
    const fallback = [{ provider: 'anthropic' as const }];
    const chat = chatJobOf({ turns: undefined, texts, fallback, deadline: Date.now() + 3_600_000 });
    await (await queue.getJob(id))?.updateData(encodeChatJob(chat));
    const down = classifyError(new Error('no'), { status: 500 });
    await start({ ...provider, run: () => Promise.reject(down) });
    await isCompleted(id);
    const next = await queueOf(queues, 'anthropic').getJob(`${id}-2`);
    expect(next?.data).toMatchObject({ v: 1, chatId: id, texts });
    expect(next?.data).not.toHaveProperty('turns');
    expect(await lie()).toBe(true);
    await next?.remove();
  });
});
