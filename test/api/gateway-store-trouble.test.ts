import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Question } from '../../api/chat/chat-command.js';
import { createGateway, type Gateway } from '../../api/chat/chat-service.js';
import { openQueueLink, type QueueLink } from '../../api/chat/jobs/job-client.js';
import { createWaitingRoom, type WaitingRoom } from '../../api/chat/jobs/pending-replies.js';
import { createKeptChats, type KeptChats } from '../../api/chat/stored-chats.js';
import { userNamed } from '../support/identities.js';
import { withLag } from '../support/lateness.js';
import { apiInstruments } from '../support/metrics.js';
import { patience, patienceMs } from '../support/patience.js';
import { createRecordingLog } from '../support/recording-log.js';
import { type SharedStore, startSharedStore } from '../support/shared-store.js';
import { findStoreKinds } from '../support/stores.js';

const stores = await findStoreKinds();
const { log } = createRecordingLog();

describe.each(stores)('the gateway and a store in trouble: $name', (choice) => {
  if (choice.servedBy === undefined) return it.skip(`(${choice.missing})`);

  let shared: SharedStore;
  let waitingRoom: WaitingRoom;
  let link: QueueLink;
  let keptChats: KeptChats;
  let gateway: Gateway;
  let going: AbortController;
  /** What happens as a job is about to be added. */
  let beforeAdd: (() => void) | undefined;
  const onGoingOn = vi.fn();

  beforeAll(async () => {
    shared = await startSharedStore(choice, log);
    waitingRoom = createWaitingRoom();
    link = await openQueueLink({ store: shared.store, waitingRoom, metrics: apiInstruments.metrics, log });
    const { records } = shared.store;
    keptChats = createKeptChats({ records, link: () => link, resultTtlMs: 60_000 });
    const add: QueueLink['add'] = (...job) => {
      beforeAdd?.();
      return link.add(...job);
    };
    const deps = { waitingRoom, keptChats, timeoutMs: 20_000, longestMs: 60_000 };
    gateway = createGateway({ ...deps, link: () => ({ ...link, add }) });
  });
  afterAll(async () => {
    shared?.wire.thaw();
    await link?.close();
    await shared?.stop();
  });
  beforeEach(() => {
    going = new AbortController();
    onGoingOn.mockReset();
    // There is no worker here, and for a while nobody says so.
    link.pools.noteOutage();
  });
  afterEach(async () => {
    beforeAdd = undefined;
    shared.wire.thaw();
    expect(await shared.store.whenReady(AbortSignal.timeout(patienceMs))).toBe(true);
  });

  const kept = (keeping: { key?: string; isAsync?: boolean }): Question => ({
    requestId: randomUUID(),
    user: 'me',
    provider: 'openai',
    model: 'm',
    turns: [{ role: 'user', content: 'Hello' }],
    gone: going.signal,
    keeping: {
      owner: userNamed('me'),
      key: undefined,
      isAsync: false,
      onOpened: () => undefined,
      onGoingOn,
      ...keeping,
    },
  });
  const ended = () => onGoingOn.mock.lastCall?.[0] as Promise<unknown>;
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
    const { code, tookMs } = await timed(gateway.ask({ ...kept({ key: randomUUID() }), patienceMs: 500 }));
    expect(code).toBe('timeout');
    expect(tookMs).toBeLessThan(1500);
  });

  it.each([{ key: 'k' }, { isAsync: true }])('says within three seconds that it is away: %o', async (how) => {
    shared.wire.freeze();
    const { code, tookMs } = await timed(gateway.ask(kept(how)));
    expect(code).toBe('queue_unavailable');
    expect(tookMs).toBeLessThan(3000);
  });

  it('reads and cancels no longer than three seconds', async () => {
    shared.wire.freeze();
    const name = { owner: userNamed('me'), id: randomUUID() };
    for (const { code, tookMs } of await Promise.all([
      timed(keptChats.read(name)),
      timed(keptChats.cancel(name)),
    ])) {
      expect(code).toBe('queue_unavailable');
      expect(tookMs).toBeLessThan(3000);
    }
  });

  it('cancels an asynchronous chat that was refused although the store has taken its job', async () => {
    beforeAdd = shared.wire.holdAnswers;
    const question = kept({ isAsync: true });
    await expect(gateway.ask(question)).rejects.toMatchObject({ code: 'queue_unavailable' });
    shared.wire.thaw();
    const job = { jobId: question.requestId, provider: 'openai' } as const;
    const outcome = async () => {
      const { record } = await keptChats
        .read({ owner: userNamed('me'), id: job.jobId })
        .catch(() => ({ record: null }));
      return record?.state === 'settled' && record.outcome.kind;
    };
    await vi.waitUntil(async () => (await outcome()) === 'cancelled', patience);
    await vi.waitUntil(async () => (await link.read(job)).state === 'unknown', patience);
    expect(onGoingOn).not.toHaveBeenCalled();
  });

  it('counts a chat as going on that is accepted from who joins it after its first add has failed', async () => {
    const key = randomUUID();
    const noted = vi.spyOn(link.pools, 'noteAdded');
    beforeAdd = shared.wire.freeze;
    await expect(gateway.ask(kept({ key, isAsync: true }))).rejects.toMatchObject({
      code: 'queue_unavailable',
    });
    expect(onGoingOn).not.toHaveBeenCalled();
    beforeAdd = undefined;
    shared.wire.thaw();
    expect(await shared.store.whenReady(AbortSignal.timeout(patienceMs))).toBe(true);
    const again = await gateway.ask(kept({ key, isAsync: true }));
    expect(again).toMatchObject({ kind: 'accepted' });
    expect(onGoingOn).toHaveBeenCalledOnce();
    const first = ended();
    // Whoever asks once more is accepted as well, and takes up nothing.
    expect(await gateway.ask(kept({ key, isAsync: true }))).toEqual(again);
    await ended();
    // Of the three the first has ended, and the others are one job.
    expect(noted).toHaveBeenCalledTimes(2);
    noted.mockRestore();
    const id = again.kind === 'accepted' ? again.id : '';
    await keptChats.cancel({ owner: userNamed('me'), id });
    await first;
    expect(waitingRoom.waiting()).toEqual([]);
  });

  it('counts nothing as going on that its caller has left and the store has not taken', async () => {
    beforeAdd = () => {
      shared.wire.freeze();
      going.abort();
    };
    const { code } = await timed(gateway.ask(kept({ key: randomUUID() })));
    expect(code).toBe('timeout');
    expect(waitingRoom.waiting()).toEqual([]);
    const { tookMs } = await timed(ended());
    expect(tookMs).toBeLessThan(3000);
    expect(waitingRoom.waiting()).toEqual([]);
  });
});
