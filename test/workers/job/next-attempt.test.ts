import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { type EndedAttempt, jobIdOf } from '../../../shared/protocol/attempts.js';
import { type ChatJob, chatJobSchema, queueName } from '../../../shared/protocol/messages.js';
import { chatKey, decodeStoredChat, encodeStoredChat } from '../../../shared/protocol/stored-chat.js';
import { closeQueues, openQueues, type Queues } from '../../../shared/queue/channels.js';
import type { QueueStore } from '../../../shared/queue/queue-store.js';
import { Cancelled, LockLost } from '../../../workers/gate/gated-call.js';
import { NextAttempts } from '../../../workers/job/next-attempt.js';
import { patienceMs } from '../../support/patience.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { describeStores } from '../../support/shared-store.js';

const { log } = createRecordingLog();

describeStores('NextAttempts in $kind', log, (shared) => {
  let attempts: NextAttempts;
  const opened: Queues[] = [];
  const open = (own: Partial<QueueStore> = {}, { answerWithinMs = patienceMs } = {}) => {
    const store = { ...shared.store, ...own };
    const queues = openQueues(store);
    opened.push(queues);
    return new NextAttempts({ store, queues, log, answerWithinMs });
  };
  beforeAll(() => {
    attempts = open();
  });
  afterAll(() => Promise.all(opened.map(closeQueues)));

  const failed = { provider: 'openai', code: 'provider_error', retryable: true } as const;
  const job = (own: Partial<ChatJob> = {}): ChatJob => ({
    ...{ v: 1, provider: 'openai', model: 'first', replyTo: 'x', user: 'me' },
    turns: [{ role: 'user', content: 'Hello' }],
    deadline: shared.store.now() + 60_000,
    fallback: [{ provider: 'anthropic' }, { provider: 'bedrock', model: 'third' }],
    ...own,
  });
  const { signal } = new AbortController();
  const next = (chatId: string, chatJob = job(), through = attempts) => {
    const failing = { chatId, queued: { name: 'chat', priority: 7 }, signal };
    return {
      find: () => through.find(failing, chatJob),
      begin: (ended: EndedAttempt = failed) => through.begin(failing, chatJob, ended),
    };
  };
  const readJob = async (provider: 'anthropic' | 'bedrock', id: string) => {
    const queue = shared.store.createQueue(queueName(provider));
    const found = await queue.getJob(id);
    await queue.close();
    return found;
  };

  type ChatQueue = ReturnType<QueueStore['createQueue']>;
  type Add = ChatQueue['add'];
  /** Attempts through queues of which this is the first `add`, or each. */
  const openWith = (
    add: (store: Add) => Add,
    { isEach = false, now = shared.store.now, limits = {} } = {},
  ) => {
    const createQueue: QueueStore['createQueue'] = (name) => {
      const queue = shared.store.createQueue(name);
      const own = add(queue.add.bind(queue));
      const spy = vi.spyOn(queue, 'add');
      if (isEach) spy.mockImplementation(own);
      else spy.mockImplementationOnce(own);
      return queue;
    };
    return open({ createQueue, now }, limits);
  };
  const rejects = () => () => Promise.reject(new Error('connection lost'));

  it('an attempt that has failed -> the job of the next provider is added once, with what else there is', async () => {
    const chatId = randomUUID();
    const chatJob = job();
    const expected = {
      ...{ provider: 'anthropic', attempt: 2, earlier: [failed] },
      fallback: [{ provider: 'bedrock', model: 'third' }],
    };
    for (let n = 0; n < 2; n += 1) expect(await next(chatId, chatJob).begin()).toEqual(expected);
    const added = await readJob('anthropic', jobIdOf(chatId, 2));
    expect(added?.priority).toBe(7);
    const { model: _, ...same } = chatJob;
    expect(chatJobSchema.parse(added?.data)).toEqual({ ...same, ...expected, chatId });
    const last = { ...chatJob, ...expected, chatId } as ChatJob;
    const third = { provider: 'bedrock', model: 'third', attempt: 3 };
    expect(await next(chatId, last).begin()).toMatchObject(third);
    expect(await readJob('bedrock', jobIdOf(chatId, 3))).toBeDefined();
  });

  it('an attempt that another worker has begun -> found, also by asking the store again', async () => {
    const chatId = randomUUID();
    expect(await next(chatId).find()).toBeUndefined();
    await next(chatId).begin();
    const readJobs = vi.fn(shared.store.readJobs).mockRejectedValueOnce(new Error('connection lost'));
    const found = await next(chatId, job(), open({ readJobs })).find();
    expect(found).toMatchObject({ provider: 'anthropic', attempt: 2 });
  });

  it.each<[string, (released: Promise<void>) => (add: Add) => Add]>([
    ['fails with the connection', () => rejects],
    [
      'is executed only after it was given up',
      (released) =>
        (add) =>
        (...added) =>
          released.then(() => add(...added)),
    ],
  ])('an add that %s -> made again meanwhile', async (_, first) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const chatId = randomUUID();
    const through = openWith(first(promise), { limits: { answerWithinMs: 20 } });
    expect(await next(chatId, job(), through).begin()).toMatchObject({ provider: 'anthropic', attempt: 2 });
    resolve();
    expect(await readJob('anthropic', jobIdOf(chatId, 2))).toBeDefined();
  });

  it('an add that the store does not answer until it is too late for a call -> given up', async () => {
    const deadline = shared.store.now() + 60_000;
    const silent = openWith(() => () => new Promise(() => {}), { isEach: true, now: () => deadline - 300 });
    expect(await next(randomUUID(), job({ deadline }), silent).begin()).toBeUndefined();
  });

  it.each([new LockLost(), new Cancelled()])('a job that was ended (%s) -> given up', async (reason) => {
    const left = { chatId: randomUUID(), queued: { name: 'chat' }, signal: AbortSignal.abort(reason) };
    expect(await openWith(rejects, { isEach: true }).begin(left, job(), failed)).toBeUndefined();
  });

  it('a stored chat -> its record says who is asked now', async () => {
    const id = randomUUID();
    const deadline = shared.store.now() + 60_000;
    const chat = {
      ...{ v: 1 as const, id, owner: 'me', ownerId: 'me', provider: 'openai' as const, requestHash: 'h' },
      ...{ createdAt: 0, deadline, keptUntil: deadline + 60_000 },
    };
    await shared.store.records.create(chatKey(id), { value: encodeStoredChat(chat), ttlMs: 60_000 });
    const records = { ...shared.store.records, replace: vi.fn(shared.store.records.replace) };
    await next(id, job({ keptUntil: chat.keptUntil }), open({ records })).begin();
    const [[, { ttlMs } = { ttlMs: 0 }] = []] = records.replace.mock.calls;
    expect(ttlMs).toBeGreaterThan(60_000);
    expect(ttlMs).toBeLessThanOrEqual(120_000);
    const recorded = decodeStoredChat((await shared.store.records.read(chatKey(id))) ?? '');
    expect(recorded).toMatchObject({ ...chat, current: { provider: 'anthropic', attempt: 2 } });
  });

  it.each<[string, Partial<EndedAttempt>, Partial<ChatJob>]>([
    ...(['content_blocked', 'provider_rejected', 'invalid_request', 'timeout', 'internal'] as const).map(
      (code): [string, Partial<EndedAttempt>, object] => [code, { code, retryable: false }, {}],
    ),
    ['no fallback', {}, { fallback: [] }],
    ['no time left', {}, { deadline: 0 }],
    ['no time left to begin a stream', {}, { firstDeltaBy: 0 }],
  ])('%s -> no next attempt', async (_, ended, own) => {
    const chatId = randomUUID();
    expect(await next(chatId, job(own)).begin({ ...failed, ...ended })).toBeUndefined();
    expect(await readJob('anthropic', jobIdOf(chatId, 2))).toBeUndefined();
  });

  it('a provider that has refused our own credentials -> the next is asked', async () => {
    const refused = { provider: 'openai', code: 'provider_rejected', credentialsRefused: true } as const;
    expect(await next(randomUUID()).begin(refused)).toMatchObject({ provider: 'anthropic' });
  });
});
