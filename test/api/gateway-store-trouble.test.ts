import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ChatCommand } from '../../api/chat/chat-command.js';
import { type ChatService, createChatService } from '../../api/chat/chat-service.js';
import { type JobClient, openJobClient } from '../../api/chat/jobs/job-client.js';
import { createPendingReplies, type PendingReplies } from '../../api/chat/jobs/pending-replies.js';
import { createStoredChats, type StoredChats } from '../../api/chat/stored-chats.js';
import { userNamed } from '../support/identities.js';
import { withLag } from '../support/lateness.js';
import { apiInstruments } from '../support/metrics.js';
import { patience, patienceMs } from '../support/patience.js';
import { createRecordingLog } from '../support/recording-log.js';
import { type SharedStore, startSharedStore } from '../support/shared-store.js';
import { findStores } from '../support/stores.js';

const stores = await findStores();
const { log } = createRecordingLog();

describe.each(stores)('the chatService and a store in trouble: $name', (choice) => {
  if (choice.servedBy === undefined) return it.skip(`(${choice.missing})`);

  let shared: SharedStore;
  let pendingReplies: PendingReplies;
  let link: JobClient;
  let storedChats: StoredChats;
  let chatService: ChatService;
  let going: AbortController;
  /** What happens as a job is about to be added. */
  let beforeAdd: (() => void) | undefined;
  const onDetached = vi.fn();

  beforeAll(async () => {
    shared = await startSharedStore(choice, log);
    pendingReplies = createPendingReplies();
    link = await openJobClient({ store: shared.store, pendingReplies, metrics: apiInstruments.metrics, log });
    const { records } = shared.store;
    storedChats = createStoredChats({ records, link: () => link, resultTtlMs: 60_000 });
    const add: JobClient['add'] = (...job) => {
      beforeAdd?.();
      return link.add(...job);
    };
    const deps = { pendingReplies, storedChats, timeoutMs: 20_000, maxMs: 60_000 };
    chatService = createChatService({ ...deps, link: () => ({ ...link, add }) });
  });
  afterAll(async () => {
    shared?.wire.thaw();
    await link?.close();
    await shared?.stop();
  });
  beforeEach(() => {
    going = new AbortController();
    onDetached.mockReset();
    // There is no worker here, and for a while nobody says so.
    link.pools.recordOutage();
  });
  afterEach(async () => {
    beforeAdd = undefined;
    shared.wire.thaw();
    expect(await shared.store.whenReady(AbortSignal.timeout(patienceMs))).toBe(true);
  });

  const kept = (storeOptions: { key?: string; isAsync?: boolean }): ChatCommand => ({
    requestId: randomUUID(),
    user: 'me',
    provider: 'openai',
    model: 'm',
    turns: [{ role: 'user', content: 'Hello' }],
    gone: going.signal,
    storeOptions: {
      owner: userNamed('me'),
      key: undefined,
      isAsync: false,
      onResolved: () => undefined,
      onDetached,
      ...storeOptions,
    },
  });
  const ended = () => onDetached.mock.lastCall?.[0] as Promise<unknown>;
  /** How it ends, and after how many milliseconds, less what the machine was late. */
  const timed = async (work: Promise<unknown>) => {
    const startedAt = performance.now();
    const ended = work.then(
      () => 'none',
      (error) => error.code,
    );
    const { result: code, lagMs } = await withLag(() => ended);
    return { code, tookMs: performance.now() - startedAt - lagMs };
  };

  it('keeps nobody past the deadline who sends a key', async () => {
    shared.wire.freeze();
    const { code, tookMs } = await timed(
      chatService.createChat({ ...kept({ key: randomUUID() }), waitMs: 500 }),
    );
    expect(code).toBe('timeout');
    expect(tookMs).toBeLessThan(1500);
  });

  it.each([{ key: 'k' }, { isAsync: true }])('says within three seconds that it is away: %o', async (how) => {
    shared.wire.freeze();
    const { code, tookMs } = await timed(chatService.createChat(kept(how)));
    expect(code).toBe('queue_unavailable');
    expect(tookMs).toBeLessThan(3000);
  });

  it('reads and cancels no longer than three seconds', async () => {
    shared.wire.freeze();
    const name = { owner: userNamed('me'), id: randomUUID() };
    for (const { code, tookMs } of await Promise.all([
      timed(storedChats.read(name)),
      timed(storedChats.cancel(name)),
    ])) {
      expect(code).toBe('queue_unavailable');
      expect(tookMs).toBeLessThan(3000);
    }
  });

  it('cancels an asynchronous chat that was refused although the store has taken its job', async () => {
    beforeAdd = shared.wire.holdAnswers;
    const command = kept({ isAsync: true });
    await expect(chatService.createChat(command)).rejects.toMatchObject({ code: 'queue_unavailable' });
    shared.wire.thaw();
    const job = { jobId: command.requestId, provider: 'openai' } as const;
    const outcome = async () => {
      const { record } = await storedChats
        .read({ owner: userNamed('me'), id: job.jobId })
        .catch(() => ({ record: null }));
      return record?.state === 'settled' && record.outcome.kind;
    };
    await vi.waitUntil(async () => (await outcome()) === 'cancelled', patience);
    await vi.waitUntil(async () => (await link.read(job)).state === 'unknown', patience);
    expect(onDetached).not.toHaveBeenCalled();
  });

  it('counts a chat as going on that is accepted from who joins it after its first add has failed', async () => {
    const key = randomUUID();
    const noted = vi.spyOn(link.pools, 'recordAdded');
    beforeAdd = shared.wire.freeze;
    await expect(chatService.createChat(kept({ key, isAsync: true }))).rejects.toMatchObject({
      code: 'queue_unavailable',
    });
    expect(onDetached).not.toHaveBeenCalled();
    beforeAdd = undefined;
    shared.wire.thaw();
    expect(await shared.store.whenReady(AbortSignal.timeout(patienceMs))).toBe(true);
    const again = await chatService.createChat(kept({ key, isAsync: true }));
    expect(again).toMatchObject({ kind: 'accepted' });
    expect(onDetached).toHaveBeenCalledOnce();
    const first = ended();
    // Whoever asks once more is accepted as well, and takes up nothing.
    expect(await chatService.createChat(kept({ key, isAsync: true }))).toEqual(again);
    await ended();
    // Of the three the first has ended, and the others are one job.
    expect(noted).toHaveBeenCalledTimes(2);
    noted.mockRestore();
    const id = again.kind === 'accepted' ? again.id : '';
    await storedChats.cancel({ owner: userNamed('me'), id });
    await first;
    expect(pendingReplies.waiting()).toEqual([]);
  });

  it('counts nothing as going on that its caller has left and the store has not taken', async () => {
    beforeAdd = () => {
      shared.wire.freeze();
      going.abort();
    };
    const { code } = await timed(chatService.createChat(kept({ key: randomUUID() })));
    expect(code).toBe('timeout');
    expect(pendingReplies.waiting()).toEqual([]);
    const { tookMs } = await timed(ended());
    expect(tookMs).toBeLessThan(3000);
    expect(pendingReplies.waiting()).toEqual([]);
  });
});
