import { randomUUID } from 'node:crypto';
import type { Queue } from 'bullmq';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { LiveChats } from '../../../api/chat/live-chats.js';
import { DeadQueues } from '../../../api/fleet-link/dead-queues.js';
import { type ProviderId, providerIds, type Target } from '../../../shared/contracts/contract.js';
import { jobIdOf } from '../../../shared/protocol/attempts.js';
import { encodeChatJob, queueName } from '../../../shared/protocol/messages.js';
import {
  chatKey,
  decodeStoredChat,
  encodeStoredChat,
  encodeStoredResult,
  resultKey,
} from '../../../shared/protocol/stored-chat.js';
import { addJob } from '../../../shared/queue/add-attempt.js';
import { attach } from '../../support/attached.js';
import { noLedger } from '../../support/entries.js';
import { patience } from '../../support/patience.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { openSharedStore, type SharedStore } from '../../support/shared-store.js';
import { findStores } from '../../support/stores.js';

describe.each(findStores())('DeadQueues in $kind', (server) => {
  const { log } = createRecordingLog();
  let shared: SharedStore;
  let queues: ReadonlyMap<ProviderId, Queue>;
  beforeAll(async () => {
    shared = await openSharedStore(server, log);
    queues = new Map(providerIds.map((id) => [id, shared.store.createQueue(queueName(id))]));
  });
  afterAll(async () => {
    await Promise.all([...(queues?.values() ?? [])].map((queue) => queue.close()));
    await shared?.stop();
  });
  const queueOf = (id: ProviderId) => queues.get(id) as Queue;

  let chats: LiveChats;
  let isAbandoned: boolean;
  beforeEach(() => {
    chats = new LiveChats();
    isAbandoned = true;
  });
  afterEach(() => {
    for (const { id } of chats.all()) chats.onOutcome(id, { kind: 'cancelled', queueMs: 0, providerMs: 0 });
  });
  const open = () =>
    new DeadQueues({
      ...{ queueOf, store: shared.store, chats, ledger: noLedger, log },
      pools: {
        isAbandoned: ({ provider }) => isAbandoned && provider === 'openai',
        isServed: ({ provider }) => provider === 'bedrock',
      },
    });
  const bedrock: Target[] = [{ provider: 'bedrock' }];

  /** Adds a job for a chat, which a request waits for unless it is forgotten. */
  const add = async (id: string, { fallback = bedrock, keptMs = 0, isForgotten = false } = {}) => {
    const { store } = shared;
    const deadline = store.now() + 60_000;
    const turns = [{ role: 'user', content: 'Hello' } as const];
    const current = { provider: 'openai', model: 'm', fallback } as const;
    const kept = keptMs > 0 && { keptUntil: deadline + keptMs };
    const payload = encodeChatJob({ v: 1, ...current, ...kept, user: 'me', turns, deadline, replyTo: 'x' });
    await addJob(queueOf('openai'), store, { jobId: id, name: 'chat', payload, priority: 3 });
    if (keptMs > 0)
      await store.records.create(chatKey(id), {
        value: encodeStoredChat({
          ...{ v: 1, id, owner: 'me', ownerId: 'me', provider: 'openai', requestHash: 'h', current },
          ...{ createdAt: 0, deadline, keptUntil: deadline + keptMs },
        }),
        ttlMs: 60_000,
      });
    return isForgotten ? undefined : attach(chats, id, { chat: { current } });
  };
  const addChat = async (own: Parameters<typeof add>[1] = {}) => {
    const request = await add(randomUUID(), own);
    return request?.chat ?? expect.unreachable();
  };
  const firstOf = (id: string) => queueOf('openai').getJob(id);
  const nextOf = (id: string) => queueOf('bedrock').getJob(jobIdOf(id, 2));

  it('passes a job on, once, says how long it has waited, and has its caller wait for the next', async () => {
    const chat = await addChat();
    const queues = open();
    await Promise.all([1, 2].map(() => queues.passOn(chat)));
    const next = await nextOf(chat.id);
    expect([await firstOf(chat.id), next?.data.provider]).toEqual([undefined, 'bedrock']);
    expect(next?.data.earlier).toEqual([
      {
        ...{ provider: 'openai', model: 'm', code: 'provider_unavailable', retryable: true },
        ...{ queueMs: expect.any(Number), providerMs: 0 },
      },
    ]);
    expect(chat.attempt).toMatchObject({ provider: 'bedrock', attempt: 2, fallback: [] });
    expect(chat.isPassedOn).toBe(false);
  });

  it('adds the next job also when the store fails after it has removed the first', async () => {
    const adding = vi.spyOn(queueOf('bedrock'), 'add').mockRejectedValueOnce(new Error('away'));
    const chat = await addChat();
    await open().passOn(chat);
    adding.mockRestore();
    expect([await firstOf(chat.id), (await nextOf(chat.id))?.data.provider]).toEqual([undefined, 'bedrock']);
  });

  it('has the next job of a stored chat in its queue before it removes the first', async () => {
    const chat = await addChat({ keptMs: 60_000 });
    let isNextThere = false;
    const removing = vi.spyOn(queueOf('openai'), 'remove').mockImplementationOnce(async () => {
      isNextThere = (await nextOf(chat.id)) !== undefined;
      throw new Error('away');
    });
    await open().passOn(chat);
    removing.mockRestore();
    expect([isNextThere, await firstOf(chat.id), chat.attempt.provider]).toEqual([
      true,
      undefined,
      'bedrock',
    ]);
  });

  it('keeps a stored chat in its queue when the store does not take the next job', async () => {
    const adding = vi.spyOn(queueOf('bedrock'), 'add').mockRejectedValueOnce(new Error('away'));
    const chat = await addChat({ keptMs: 60_000 });
    await open().passOn(chat);
    adding.mockRestore();
    expect([(await firstOf(chat.id))?.id, chat.attempt.provider]).toEqual([chat.id, 'openai']);
    await open().passOn(chat);
    expect([await firstOf(chat.id), chat.attempt.provider]).toEqual([undefined, 'bedrock']);
  });

  it.each([0, 60_000])('leaves a job alone that a worker runs (kept for %d ms)', async (keptMs) => {
    const [taken, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const run = async () => {
      taken.resolve();
      await release.promise;
    };
    // The other jobs of this queue wait: the worker takes this one first.
    await queueOf('openai').drain();
    const chat = await addChat({ keptMs });
    const worker = shared.store.createWorker(queueName('openai'), run, {});
    await taken.promise;
    await open().passOn(chat);
    expect([(await firstOf(chat.id))?.id, await nextOf(chat.id)]).toEqual([chat.id, undefined]);
    release.resolve();
    await worker.close();
  });

  it('leaves a job alone that has ended meanwhile, and its outcome', async () => {
    const worker = shared.store.createWorker(queueName('openai'), async () => 'outcome', {});
    const completed = new Promise((resolve) => worker.once('completed', resolve));
    const chat = await addChat();
    await completed;
    await worker.close();
    await open().passOn(chat);
    expect((await firstOf(chat.id))?.returnvalue).toBe('outcome');
    expect(await nextOf(chat.id)).toBeUndefined();
  });

  it('passes a whole queue on, ten at a time', async () => {
    const waiting = await Promise.all(Array.from({ length: 25 }, () => addChat()));
    const remove = queueOf('openai').remove.bind(queueOf('openai'));
    let [running, most] = [0, 0];
    const removing = vi.spyOn(queueOf('openai'), 'remove').mockImplementation(async (jobId) => {
      running += 1;
      most = Math.max(most, running);
      return remove(jobId).finally(() => {
        running -= 1;
      });
    });
    const queues = open();
    await Promise.all([...waiting, ...waiting].map((chat) => queues.passOn(chat)));
    removing.mockRestore();
    expect(most).toBeLessThanOrEqual(10);
    const next = await Promise.all(waiting.map(({ id }) => nextOf(id)));
    expect(next.filter((job) => job === undefined)).toEqual([]);
  });

  it('leaves jobs alone whose text is read here, that a pool takes, or that have no fallback', async () => {
    const [read, taken, alone] = await Promise.all([addChat(), addChat(), addChat({ fallback: [] })]);
    vi.spyOn(read, 'isRead', 'get').mockReturnValue(true);
    await open().passOn(read);
    await open().passOn(alone);
    isAbandoned = false;
    await open().passOn(taken);
    for (const { id } of [read, taken, alone])
      expect([(await firstOf(id))?.id, await nextOf(id)]).toEqual([id, undefined]);
  });

  it('passes on stored chats that no request here waits for, and no others', async () => {
    const stored = { keptMs: 60_000, isForgotten: true };
    const [forgotten, ended, waited, plain] = Array.from({ length: 4 }, () => randomUUID());
    if (!forgotten || !ended || !waited || !plain) return expect.unreachable();
    await add(forgotten, stored);
    await add(ended, stored);
    await add(waited, { ...stored, isForgotten: false });
    await add(plain, { isForgotten: true });
    const value = encodeStoredResult({ kind: 'cancelled', queueMs: 0, providerMs: 0 }, 0);
    await shared.store.records.create(resultKey(ended), { value, ttlMs: 60_000 });
    const queues = open();
    // Jobs of the tests before may fill a sweep.
    await vi.waitUntil(async () => {
      await queues.sweep();
      return (await firstOf(forgotten)) === undefined && (await firstOf(ended)) === undefined;
    }, patience);
    expect((await nextOf(forgotten))?.data).toMatchObject({ provider: 'bedrock', chatId: forgotten });
    expect(await nextOf(ended)).toBeUndefined();
    expect(
      decodeStoredChat((await shared.store.records.read(chatKey(forgotten))) ?? '').current,
    ).toMatchObject({
      ...{ provider: 'bedrock', attempt: 2 },
    });
    for (const id of [waited, plain]) expect((await firstOf(id))?.id).toBe(id);
    isAbandoned = false;
    const left = randomUUID();
    await add(left, stored);
    await queues.sweep();
    await queues.sweep();
    expect((await firstOf(left))?.id).toBe(left);
  });
});
