import { randomUUID } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ChatCommand } from '../../../api/chat/chat-command.js';
import { ChatService } from '../../../api/chat/chat-service.js';
import { JobClient } from '../../../api/chat/jobs/job-client.js';
import { LiveChats } from '../../../api/chat/live-chats.js';
import { StoredChats } from '../../../api/chat/stored-chats.js';
import { UserShares } from '../../../api/chat/user-shares.js';
import { queueName } from '../../../shared/protocol/messages.js';
import { countAll } from '../../../shared/queue/priority.js';
import { heldTimeouts } from '../../support/held-timeouts.js';
import { userNamed } from '../../support/identities.js';
import { apiInstruments } from '../../support/metrics.js';
import { patience, patienceMs } from '../../support/patience.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { type SharedStore, startSharedStore } from '../../support/shared-store.js';
import { findStores } from '../../support/stores.js';

const stores = findStores();
const { log } = createRecordingLog();
/** After so many milliseconds a store that says nothing counts as down. */
const silentMs = 2500;

describe.each(stores)('ChatService while the store is down: $name', (choice) => {
  let shared: SharedStore;
  let chats: LiveChats;
  let shares: UserShares;
  let jobs: JobClient;
  let storedChats: StoredChats;
  let chatService: ChatService;
  let client: AbortController;
  const timeouts = heldTimeouts();
  /** Runs as a job is about to be added. */
  let beforeAdd: (() => void) | undefined;
  const detached = vi.fn();
  const ended = vi.fn();

  beforeAll(async () => {
    shared = await startSharedStore(choice, log);
    chats = new LiveChats();
    shares = new UserShares();
    for (const listener of [shares, { detached, ended }]) chats.listen(listener);
    jobs = await JobClient.open({
      store: shared.store,
      chats,
      metrics: apiInstruments.metrics,
      log,
      withTimeout: timeouts.withTimeout,
    });
    const { records } = shared.store;
    storedChats = new StoredChats({
      records,
      jobClient: () => jobs,
      resultTtlMs: 60_000,
      maxOutputTokens: () => 4096,
      withTimeout: timeouts.withTimeout,
    });
    const add = jobs.add.bind(jobs);
    vi.spyOn(jobs, 'add').mockImplementation((...job) => {
      beforeAdd?.();
      return add(...job);
    });
    const deps = {
      chats,
      shares,
      storedChats,
      timeoutMs: 20_000,
      maxMs: 60_000,
      maxStreamMs: 60_000,
    };
    chatService = new ChatService({ ...deps, jobClient: () => jobs });
  });
  afterAll(async () => {
    shared?.wire.thaw();
    await jobs?.close();
    await shared?.stop();
  });
  beforeEach(() => {
    client = new AbortController();
    for (const heard of [detached, ended]) heard.mockReset();
    // There is no worker here; after an outage that is not known for a while.
    jobs.heartbeats.recordOutage();
  });
  afterEach(async () => {
    beforeAdd = undefined;
    shared.wire.thaw();
    expect(await shared.store.whenReady(AbortSignal.timeout(patienceMs))).toBe(true);
  });

  const storedCommand = (storeOptions: { key?: string; isAsync?: boolean }): ChatCommand => ({
    requestId: randomUUID(),
    user: 'me',
    provider: 'openai',
    model: 'm',
    turns: [{ role: 'user', content: 'Hello' }],
    signal: client.signal,
    storeOptions: {
      owner: userNamed('me'),
      key: undefined,
      isAsync: false,
      onResolved: () => undefined,
      ...storeOptions,
    },
  });
  /** The code that the work fails with, once the store has been silent for so long. */
  const failsAfter = async (ms: number, work: Promise<unknown>) => {
    const end = work.then(
      () => 'none',
      (error) => error.code,
    );
    await timeouts.elapse(ms - 1);
    expect(await Promise.race([end, 'waits'])).toBe('waits');
    await timeouts.elapse(1);
    // At once, and not because the store's own connection gives up later.
    return Promise.race([end, turn('waits')]);
  };
  /** Has the store fall silent as the job of a new chat is added, and the chat refused for it once `reached`. */
  const refuse = async (command: ChatCommand, silence: () => void, reached = async () => {}) => {
    const silent = new Promise<void>((resolve) => {
      beforeAdd = () => {
        silence();
        resolve();
      };
    });
    const refused = expect(chatService.createChat(command)).rejects.toMatchObject({
      code: 'queue_unavailable',
    });
    await silent;
    beforeAdd = undefined;
    await reached();
    await timeouts.elapse(silentMs);
    await refused;
  };

  it('the deadline of a request with a key passes before the store counts as down -> timeout', async () => {
    shared.wire.freeze();
    const creating = chatService.createChat({ ...storedCommand({ key: randomUUID() }), waitMs: 500 });
    const end = expect(creating).rejects.toMatchObject({ code: 'timeout' });
    await timeouts.elapse(500);
    await end;
  });

  it.each([{ key: 'k' }, { isAsync: true }])('a new chat with %o -> fails after 2.5 seconds', async (how) => {
    shared.wire.freeze();
    expect(await failsAfter(silentMs, chatService.createChat(storedCommand(how)))).toBe('queue_unavailable');
  });

  it.each(['read', 'cancel'] as const)('to %s a chat -> fails after 2.5 seconds', async (what) => {
    shared.wire.freeze();
    const name = { owner: userNamed('me'), id: randomUUID() };
    expect(await failsAfter(silentMs, storedChats[what](name))).toBe('queue_unavailable');
  });

  it('an asynchronous chat is refused although the store has taken its job -> it is cancelled', async () => {
    const command = storedCommand({ isAsync: true });
    const queue = shared.another.createQueue(queueName('openai'));
    await refuse(command, shared.wire.holdAnswers, () =>
      vi.waitUntil(async () => Boolean(await queue.getJob(command.requestId)), patience).then(() => {}),
    );
    await queue.close();
    shared.wire.thaw();
    const job = { jobId: command.requestId, provider: 'openai' } as const;
    const outcome = async () => {
      const { result } = await storedChats
        .read({ owner: userNamed('me'), id: job.jobId })
        .catch(() => ({ result: null }));
      return result?.state === 'settled' && result.outcome.kind;
    };
    await vi.waitUntil(async () => (await outcome()) === 'cancelled', patience);
    await vi.waitUntil(async () => (await jobs.read(job)).state === 'unknown', patience);
    expect(detached).not.toHaveBeenCalled();
  });

  it('a chat is joined and accepted after its first add had failed -> it counts as detached once', async () => {
    const key = randomUUID();
    await refuse(storedCommand({ key, isAsync: true }), shared.wire.freeze);
    expect(detached).not.toHaveBeenCalled();
    shared.wire.thaw();
    expect(await shared.store.whenReady(AbortSignal.timeout(patienceMs))).toBe(true);
    const again = await chatService.createChat(storedCommand({ key, isAsync: true }));
    expect(again).toMatchObject({ kind: 'accepted' });
    expect(detached).toHaveBeenCalledOnce();
    // One more request with the key is accepted as well, and takes up nothing.
    expect(await chatService.createChat(storedCommand({ key, isAsync: true }))).toEqual(again);
    expect(detached).toHaveBeenCalledOnce();
    // The first is no longer counted, and the two others are one chat.
    expect(shares.of('openai').async.reduce((sum, count) => sum + count)).toBe(1);
    const id = again.kind === 'accepted' ? again.id : '';
    await storedChats.cancel({ owner: userNamed('me'), id });
    await vi.waitUntil(() => ended.mock.calls.length === 2, patience);
    expect(chats.all()).toEqual([]);
  });

  it('a client leaves a chat that the store has not taken -> it is over, and counts nowhere', async () => {
    beforeAdd = () => {
      shared.wire.freeze();
      client.abort();
    };
    const command = storedCommand({ key: randomUUID() });
    await expect(chatService.createChat(command)).rejects.toMatchObject({ code: 'timeout' });
    expect(chats.all()).toHaveLength(1);
    await timeouts.elapse(silentMs);
    await vi.waitUntil(() => chats.all().length === 0, patience);
    expect(countAll(shares.of('openai').waitedFor)).toBe(0);
  });
});
