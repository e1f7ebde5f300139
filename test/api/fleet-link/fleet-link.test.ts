import { once } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { LiveChats } from '../../../api/chat/live-chats.js';
import type { NewJob, PendingJob } from '../../../api/fleet-link/chat-receiver.js';
import { FleetLink } from '../../../api/fleet-link/fleet-link.js';
import { JobRecords } from '../../../api/fleet-link/job-records.js';
import { ResultPoller } from '../../../api/fleet-link/result-poller.js';
import { describeProviders, listModels } from '../../../shared/fleet/fleet.js';
import { queueName, topics } from '../../../shared/protocol/messages.js';
import { encodeOutcome, type Outcome } from '../../../shared/protocol/outcome.js';
import { resendSchema } from '../../../shared/protocol/parts.js';
import { encodeStoredResult, resultKey } from '../../../shared/protocol/stored-chat.js';
import type { QueueStore } from '../../../shared/queue/queue-store.js';
import { openRelay, type Relay } from '../../../shared/queue/relay.js';
import { attach, leave, writeContent } from '../../support/attached.js';
import { noLedger, originOfTest } from '../../support/entries.js';
import { heartbeatOf } from '../../support/heartbeats.js';
import { heldTimeouts } from '../../support/held-timeouts.js';
import { apiInstruments } from '../../support/metrics.js';
import { patience } from '../../support/patience.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { openSharedStore, type SharedStore } from '../../support/shared-store.js';
import { storeOf } from '../../support/stores.js';

const chats = new LiveChats();
const { log } = createRecordingLog();
const timeouts = heldTimeouts();
let shared: SharedStore;
let store: QueueStore;
let link: FleetLink;
/** That of another process. */
let relay: Relay;

beforeAll(async () => {
  shared = await openSharedStore(storeOf('postgres'), log);
  store = shared.store;
  const { metrics } = apiInstruments;
  link = new FleetLink({ store, metrics, ledger: noLedger, log, withTimeout: timeouts.withTimeout });
  await link.start(chats);
  relay = await openRelay(shared.another, { name: 'test', log });
});
afterAll(async () => {
  await relay?.close();
  await link?.close();
  await shared?.stop();
});

const written = writeContent({ turns: [{ role: 'user', content: 'Hi' }] });
const job = { user: 'me', provider: 'openai', written, origin: originOfTest() } as const;
const ok: Outcome = { kind: 'ok', text: 'Hello', model: 'm', queueMs: 1, providerMs: 1 };
const later = () => Date.now() + 10_000;
const add = (jobId: string, own: Partial<NewJob> = {}) =>
  link.add(jobId, { ...job, deadline: later(), ...own });

describe('a connected link', () => {
  it('misses the message of an outcome -> finds it in the record', async () => {
    const { outcome } = attach(chats, 'unpublished');
    await add('unpublished');
    const worker = store.createWorker(queueName('openai'), async () => encodeOutcome(ok), {});
    expect(await outcome).toEqual(ok);
    const record = await link.read({ jobId: 'unpublished', provider: 'openai' });
    expect(record).toEqual({ state: 'settled', outcome: ok });
    await worker.close();
  });

  it('hears that a stored chat has ended -> reads its record', async () => {
    const job = { jobId: 'stored', provider: 'openai', isStored: true } as const;
    const waiting = attach(chats, 'stored', { chat: { expiresAt: later() } });
    await store.records.create(resultKey('stored'), { value: encodeStoredResult(ok, 1000), ttlMs: 60_000 });
    await relay.publish(topics.storedResult, { v: 1, settled: [{ jobId: 'stored' }] });
    expect(await waiting.outcome).toEqual(ok);
    expect(await link.read(job)).toEqual({ state: 'settled', outcome: ok, settledAt: 1000 });
  });

  it('hears one message of a process -> has the heartbeats of all of its pools', async () => {
    const pools = ['bedrock', 'unheard of', 'vertexai'].map((provider) => ({ ...heartbeatOf(), provider }));
    await relay.broadcast(topics.processes, { v: 1, worker: 'one', pools });
    const heard = () =>
      describeProviders(link.heartbeats).flatMap(({ provider, workers }) => workers.map(() => provider));
    await vi.waitFor(() => expect(heard()).toEqual(['bedrock', 'vertexai']), patience);
    await relay.broadcast(topics.processes, {
      ...{ v: 1, worker: 'one' },
      pools: pools.map((each) => ({ ...each, state: 'stopped' })),
    });
    await vi.waitFor(() => expect(describeProviders(link.heartbeats)[2]?.workers).toEqual([]), patience);
  });

  it('has a reader who leaves a chat -> tells every provider that may have it', async () => {
    const told: string[] = [];
    for (const provider of ['openai', 'anthropic'] as const)
      await relay.subscribe(topics.resend(provider), resendSchema, ({ jobId, left }) => {
        if (jobId === 'read' && left) told.push(provider);
      });
    const read: PendingJob = {
      ...{ jobId: 'read', provider: 'openai', isStored: true },
      fallback: [{ provider: 'anthropic' }, { provider: 'openai', model: 'm' }],
    };
    link.requestResend(read, { reader: undefined, from: 0, max: 1, left: true });
    await vi.waitFor(() => expect(told.toSorted()).toEqual(['anthropic', 'openai']), patience);
  });

  it('reads a job -> whether it is queued, or unknown', async () => {
    await add('queued', { provider: 'vertexai' });
    expect(await link.read({ jobId: 'queued', provider: 'vertexai' })).toEqual({ state: 'queued' });
    await add('later-2', { provider: 'vertexai' });
    const second = { jobId: 'later', provider: 'vertexai', attempt: 2 } as const;
    expect(await link.read(second)).toEqual({ state: 'queued', wasTaken: true });
    expect(await link.read({ jobId: 'never-added', provider: 'vertexai' })).toEqual({ state: 'unknown' });
  });

  it('reads many records, and one cannot be read -> has the others', async () => {
    await store.records.create(resultKey('of-a-newer'), { value: '{"v":5}', ttlMs: 60_000 });
    const queue = store.createQueue(queueName('bedrock'));
    const deadQueues = { passOn: async () => undefined, sweep: async () => undefined };
    const jobRecords = new JobRecords({ queueOf: () => queue, store });
    const poller = new ResultPoller({ chats, jobRecords, store, deadQueues, log });
    const stored = { command: { provider: 'bedrock' }, chat: { expiresAt: later() } } as const;
    const [newer, lost] = ['of-a-newer', 'lost'].map((id) => attach(chats, id, stored));
    const polled = [newer?.chat ?? [], lost?.chat ?? []].flat();
    expect(await poller.poll(polled)).toEqual([lost?.chat]);
    for (const request of [newer, lost]) if (request) leave(chats, request);
    await queue.close();
  });

  it('finds a job pending -> records that it has seen it', async () => {
    const startedAt = Date.now();
    const waiting = attach(chats, 'seen', { command: { provider: 'vertexai' } });
    const seen = vi.spyOn(waiting.chat, 'seen');
    await add('seen', { provider: 'vertexai' });
    await vi.waitUntil(() => seen.mock.calls.length > 0, patience);
    const [at, facts] = seen.mock.calls[0] ?? [];
    expect(at).toBeGreaterThanOrEqual(startedAt);
    expect(facts).toEqual({ isRunning: false });
    leave(chats, waiting);
  });

  it('has chats that nobody does any more -> passes them on, but no stream that has begun', async () => {
    const abandoned = vi.spyOn(link.pools, 'isAbandoned').mockReturnValue(true);
    const served = vi.spyOn(link.pools, 'isServed').mockReturnValue(true);
    const named = { provider: 'vertexai' as const, fallback: [{ provider: 'bedrock' as const }] };
    const stream = { from: undefined, sink: { begin: () => {}, write: () => true, drained: async () => {} } };
    const waiting = ['begun', 'queued anew'].map(async (jobId) => {
      await add(jobId, named);
      return attach(chats, jobId, { chat: { current: named }, stream });
    });
    const requests = await Promise.all(waiting);
    chats.onDelta({ jobId: 'begun', callId: 'call', at: 0, text: 'Hel' });
    await vi.waitUntil(() => chats.find('queued anew')?.attempt.attempt === 2, patience);
    expect(chats.find('begun')?.attempt).toMatchObject(named);
    abandoned.mockRestore();
    served.mockRestore();
    for (const request of requests) {
      request[Symbol.dispose]();
      leave(chats, request);
    }
  });

  it('hears an outcome that it cannot read -> takes it for internal, and goes on with the others', async () => {
    const jobs = ['odd', 'even'].map((id) => attach(chats, id).outcome);
    const replyTo = Promise.withResolvers<string>();
    const worker = store.createWorker(
      queueName('openai'),
      async ({ data }) => {
        replyTo.resolve(data.replyTo);
        return encodeOutcome(ok);
      },
      {},
    );
    await add('to-learn-the-address');
    await relay.publish(topics.reply(await replyTo.promise), {
      v: 1,
      settled: [
        { jobId: 'odd', outcome: '{"kind":"unheard of"}' },
        { jobId: 'even', outcome: encodeOutcome(ok) },
      ],
    });
    expect(await Promise.all(jobs)).toEqual([expect.objectContaining({ code: 'internal' }), ok]);
    await worker.close();
  });

  describe('with a store that has fallen silent', () => {
    beforeEach(() => {
      shared.wire.freeze();
      return () => shared.wire.thaw();
    });

    it.each<[string, () => Promise<unknown>]>([
      ['reads a job', () => link.read({ jobId: 'silent', provider: 'openai' })],
      [
        'reads the job of a stored chat',
        () => link.read({ jobId: 'silent', provider: 'openai', isStored: true }),
      ],
      ['adds a job', () => add('silent')],
    ])('%s -> gives up after two and a half seconds', async (_, work) => {
      const end = work().then(
        () => 'done',
        () => 'given up',
      );
      await timeouts.elapse(2499);
      expect(await Promise.race([end, 'waits'])).toBe('waits');
      await timeouts.elapse(1);
      // At once, and not because the store's own connection gives up later.
      expect(await Promise.race([end, turn('waits')])).toBe('given up');
    });
  });
});

describe('a link that has not reached its store yet', () => {
  const early: PendingJob = { jobId: 'early', provider: 'openai' };
  let link: FleetLink;
  let connected: Promise<boolean>;
  beforeEach(() => {
    const whenReady = (signal: AbortSignal) => once(signal, 'abort').then(() => false);
    link = new FleetLink({
      store: { ...store, whenReady },
      metrics: apiInstruments.metrics,
      ledger: noLedger,
      log,
    });
    connected = link.start(chats);
    return () => link.close();
  });

  it.each<[string, () => unknown]>([
    ['checks its store', () => link.check()],
    ['adds a job', () => link.add('early', { ...job, deadline: later() })],
    ['reads a job', () => link.read(early)],
    ['ends a chat', () => link.end('early', async () => undefined)],
    ['measures a queue', () => link.measure('openai')],
    ['gives a queue', () => link.queueOf('openai')],
    ['gives its relay', () => link.relay],
    ['gives the channel of settings', () => link.settingsChannel],
    ['has to be connected', () => link.assertConnected()],
  ])('%s -> queue_unavailable at once', async (_, use) => {
    const end = (async () => use())().catch((error: unknown) => error);
    expect(await Promise.race([end, turn('waits')])).toMatchObject({ code: 'queue_unavailable' });
  });

  it('cancels a job, or asks for its text -> does nothing', async () => {
    link.cancel(early);
    link.cancelUnconfirmed(early);
    link.requestResend(early, { reader: undefined, from: 0, max: 1 });
    expect(link.isConnected).toBe(false);
  });

  it('is asked for workers -> knows of none, and that some may be there', () => {
    const { heartbeats, pools } = link;
    heartbeats.recordOutage();
    expect(describeProviders(heartbeats).map(({ state }) => state)).toEqual(Array(4).fill('unknown'));
    expect(listModels(heartbeats)).toEqual([]);
    expect(pools.totalConcurrency()).toBeUndefined();
    expect([pools.isServed(early), pools.isAbandoned(early)]).toEqual([true, false]);
  });

  it('is closed -> has stopped without a connection', async () => {
    await link.close();
    expect([link.isConnected, await connected]).toEqual([false, false]);
    await expect(link.check()).rejects.toMatchObject({ code: 'queue_unavailable' });
  });
});

describe('a link that is prepared', () => {
  it('-> counts as connected after that, and until it is closed', async () => {
    const link = new FleetLink({ store, metrics: apiInstruments.metrics, ledger: noLedger, log });
    const states: boolean[] = [];
    const isConnected = await link.start(chats, async ({ records }) => {
      await records.read('any');
      states.push(link.isConnected);
    });
    states.push(link.isConnected);
    await link.close();
    expect([isConnected, ...states, link.isConnected]).toEqual([true, false, true, false]);
    await expect(link.read({ jobId: 'late', provider: 'openai' })).rejects.toMatchObject({
      code: 'queue_unavailable',
    });
  });
});
