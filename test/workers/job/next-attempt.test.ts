import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { type EndedAttempt, jobIdOf } from '../../../shared/protocol/attempts.js';
import { type ChatJob, chatJobSchema, queueName } from '../../../shared/protocol/messages.js';
import { chatKey, decodeStoredChat, encodeStoredChat } from '../../../shared/protocol/stored-chat.js';
import { closeQueues, openQueues, type Queues } from '../../../shared/queue/channels.js';
import type { QueueStore } from '../../../shared/queue/queue-store.js';
import { Cancelled, LockLost } from '../../../workers/gate/ends.js';
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
    const failing = { chatId, queued: { priority: 7 }, signal };
    return {
      find: () => through.find(failing, chatJob),
      begin: (ended: EndedAttempt) => through.begin(failing, chatJob, ended),
    };
  };
  const readJob = async (provider: 'anthropic' | 'bedrock', id: string) => {
    const queue = shared.store.createQueue(queueName(provider));
    const found = await queue.getJob(id);
    await queue.close();
    return found;
  };

  it('an attempt that has failed -> the job of the next provider is added once, with what else there is', async () => {
    const chatId = randomUUID();
    const chatJob = job();
    const expected = {
      ...{ provider: 'anthropic', attempt: 2, earlier: [failed] },
      fallback: [{ provider: 'bedrock', model: 'third' }],
    };
    expect(await next(chatId, chatJob).begin(failed)).toEqual(expected);
    expect(await next(chatId, chatJob).begin(failed)).toEqual(expected);
    const added = await readJob('anthropic', jobIdOf(chatId, 2));
    expect(added?.priority).toBe(7);
    const { model: _, ...same } = chatJob;
    expect(chatJobSchema.parse(added?.data)).toEqual({ ...same, ...expected, chatId });
    const last = { ...chatJob, ...expected, chatId } as ChatJob;
    expect(await next(chatId, last).begin(failed)).toMatchObject({
      provider: 'bedrock',
      model: 'third',
      attempt: 3,
    });
    expect(await readJob('bedrock', jobIdOf(chatId, 3))).toBeDefined();
  });

  type ChatQueue = ReturnType<QueueStore['createQueue']>;
  /** Attempts through queues that the test has changed. */
  const openWith = (change: (queue: ChatQueue) => void, own: Partial<QueueStore> = {}, limits = {}) => {
    const createQueue: QueueStore['createQueue'] = (name) => {
      const queue = shared.store.createQueue(name);
      change(queue);
      return queue;
    };
    return open({ createQueue, ...own }, limits);
  };

  it('a connection to the store that is lost at that moment -> it is added all the same', async () => {
    const unlucky = openWith(
      (queue) => void vi.spyOn(queue, 'add').mockRejectedValueOnce(new Error('connection lost')),
    );
    const chatId = randomUUID();
    const begun = await next(chatId, job(), unlucky).begin(failed);
    expect(begun).toMatchObject({ provider: 'anthropic', attempt: 2 });
    expect(await readJob('anthropic', jobIdOf(chatId, 2))).toBeDefined();
  });

  it('an attempt that another worker has begun -> is found', async () => {
    const chatId = randomUUID();
    expect(await next(chatId).find()).toBeUndefined();
    await next(chatId).begin(failed);
    expect(await next(chatId).find()).toMatchObject({ provider: 'anthropic', attempt: 2 });
  });

  it('a store that does not answer -> is asked again whether there is one', async () => {
    const chatId = randomUUID();
    await next(chatId).begin(failed);
    const readJobs = vi.fn(shared.store.readJobs).mockRejectedValueOnce(new Error('connection lost'));
    const unlucky = open({ readJobs });
    expect(await next(chatId, job(), unlucky).find()).toMatchObject({ provider: 'anthropic', attempt: 2 });
  });

  /** The first add through it is executed only when `release` is called, after it has been given up. */
  const openSlow = () => {
    const added = Promise.withResolvers<void>();
    const delayFirst = (queue: ChatQueue) => {
      const add = queue.add.bind(queue);
      vi.spyOn(queue, 'add').mockImplementationOnce(async (...job) => {
        await added.promise;
        return add(...job);
      });
    };
    return { slow: openWith(delayFirst, {}, { answerWithinMs: 20 }), release: added.resolve };
  };

  it('an add that is executed late -> is made again meanwhile, not given up', async () => {
    const { slow, release } = openSlow();
    const chatId = randomUUID();
    expect(await next(chatId, job(), slow).begin(failed)).toMatchObject({ provider: 'anthropic' });
    release();
    expect(await readJob('anthropic', jobIdOf(chatId, 2))).toBeDefined();
  });

  it('an add that the store does not answer until it is too late for a call -> is given up', async () => {
    const never = (queue: ChatQueue) => void vi.spyOn(queue, 'add').mockReturnValue(new Promise(() => {}));
    const deadline = shared.store.now() + 60_000;
    const silent = openWith(never, { now: () => deadline - 300 });
    expect(await next(randomUUID(), job({ deadline }), silent).begin(failed)).toBeUndefined();
  });

  it.each([new LockLost(), new Cancelled()])(
    'a job that was ended (%s) -> the next attempt is given up',
    async (reason) => {
      const down = openWith((queue) => void vi.spyOn(queue, 'add').mockRejectedValue(new Error('down')));
      const left = { chatId: randomUUID(), queued: {}, signal: AbortSignal.abort(reason) };
      expect(await down.begin(left, job(), failed)).toBeUndefined();
    },
  );

  it('a stored chat -> its record says who is asked now', async () => {
    const id = randomUUID();
    const deadline = shared.store.now() + 60_000;
    const chat = {
      ...{ v: 1 as const, id, owner: 'me', ownerId: 'me', provider: 'openai' as const, requestHash: 'h' },
      ...{ createdAt: 0, deadline, keptUntil: deadline + 60_000 },
    };
    await shared.store.records.create(chatKey(id), { value: encodeStoredChat(chat), ttlMs: 60_000 });
    await next(id, job({ keptUntil: chat.keptUntil })).begin(failed);
    const recorded = decodeStoredChat((await shared.store.records.read(chatKey(id))) ?? '');
    expect(recorded).toMatchObject({ ...chat, current: { provider: 'anthropic', attempt: 2 } });
  });

  it.each(['content_blocked', 'provider_rejected', 'invalid_request', 'timeout', 'internal'] as const)(
    '%s -> no next attempt',
    async (code) => {
      const chatId = randomUUID();
      expect(await next(chatId).begin({ provider: 'openai', code })).toBeUndefined();
      expect(await readJob('anthropic', jobIdOf(chatId, 2))).toBeUndefined();
    },
  );

  it('a provider that has refused our own credentials -> the next is asked', async () => {
    const refused = { provider: 'openai', code: 'provider_rejected', credentialsRefused: true } as const;
    expect(await next(randomUUID()).begin(refused)).toMatchObject({ provider: 'anthropic' });
  });

  it('no fallback, or no time left -> no next attempt', async () => {
    expect(await next(randomUUID(), job({ fallback: [] })).begin(failed)).toBeUndefined();
    const late = [{ deadline: shared.store.now() }, { firstDeltaBy: shared.store.now() }];
    for (const own of late) expect(await next(randomUUID(), job(own)).begin(failed)).toBeUndefined();
  });
});
