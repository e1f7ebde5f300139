import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ChatCommand } from '../../../api/chat/chat-command.js';
import { ChatService } from '../../../api/chat/chat-service.js';
import { JobClient } from '../../../api/chat/jobs/job-client.js';
import { LiveChats } from '../../../api/chat/live-chats.js';
import { StoredChats } from '../../../api/chat/stored-chats.js';
import { UserShares } from '../../../api/chat/user-shares.js';
import { userNamed } from '../../support/identities.js';
import { withLag } from '../../support/lateness.js';
import { apiInstruments } from '../../support/metrics.js';
import { patience, patienceMs } from '../../support/patience.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { type SharedStore, startSharedStore } from '../../support/shared-store.js';
import { findStores } from '../../support/stores.js';

const stores = findStores();
const { log } = createRecordingLog();

describe.each(stores)('ChatService while the store is down: $name', (choice) => {
  if (choice.servedBy === undefined) return it.skip(`(${choice.missing})`);

  let shared: SharedStore;
  let chats: LiveChats;
  let shares: UserShares;
  let jobs: JobClient;
  let storedChats: StoredChats;
  let chatService: ChatService;
  let client: AbortController;
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
    });
    const { records } = shared.store;
    storedChats = new StoredChats({
      records,
      jobClient: () => jobs,
      resultTtlMs: 60_000,
      maxOutputTokens: () => 4096,
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

  it('does not keep a request with a key past its deadline', async () => {
    shared.wire.freeze();
    const { code, tookMs } = await timed(
      chatService.createChat({ ...storedCommand({ key: randomUUID() }), waitMs: 500 }),
    );
    expect(code).toBe('timeout');
    expect(tookMs).toBeLessThan(1500);
  });

  it.each([{ key: 'k' }, { isAsync: true }])('fails within three seconds: %o', async (how) => {
    shared.wire.freeze();
    const { code, tookMs } = await timed(chatService.createChat(storedCommand(how)));
    expect(code).toBe('queue_unavailable');
    expect(tookMs).toBeLessThan(3000);
  });

  it('fails to read and to cancel within three seconds', async () => {
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
    const command = storedCommand({ isAsync: true });
    await expect(chatService.createChat(command)).rejects.toMatchObject({ code: 'queue_unavailable' });
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

  it('counts a chat as detached that was joined and accepted after its first add had failed', async () => {
    const key = randomUUID();
    beforeAdd = shared.wire.freeze;
    await expect(chatService.createChat(storedCommand({ key, isAsync: true }))).rejects.toMatchObject({
      code: 'queue_unavailable',
    });
    expect(detached).not.toHaveBeenCalled();
    beforeAdd = undefined;
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

  it('counts nothing as detached that its client has left and the store has not taken', async () => {
    beforeAdd = () => {
      shared.wire.freeze();
      client.abort();
    };
    const { code } = await timed(chatService.createChat(storedCommand({ key: randomUUID() })));
    expect(code).toBe('timeout');
    const over = vi.waitUntil(() => chats.all().length === 0, patience);
    expect((await timed(over)).tookMs).toBeLessThan(3000);
  });
});
