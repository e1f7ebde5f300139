import { createHash, randomUUID } from 'node:crypto';
import type { Queue } from 'bullmq';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ResolvedChat, StoredChatCommand } from '../../../api/chat/chat-command.js';
import { LiveChats } from '../../../api/chat/live-chats.js';
import { StoredAnswers } from '../../../api/chat/stored-answers.js';
import { StoredChats } from '../../../api/chat/stored-chats.js';
import { FleetLink } from '../../../api/fleet-link/fleet-link.js';
import type { Turn } from '../../../shared/conversation.js';
import { Failure } from '../../../shared/failures.js';
import type { Attempt } from '../../../shared/protocol/attempts.js';
import { queueName } from '../../../shared/protocol/messages.js';
import { encodeOutcome, givenUpOutcome, type Outcome } from '../../../shared/protocol/outcome.js';
import { chatKey, encodeStoredResult, resultKey } from '../../../shared/protocol/stored-chat.js';
import type { QueueStore } from '../../../shared/queue/queue-store.js';
import { attach, writeContent } from '../../support/attached.js';
import { noLedger, originOfTest } from '../../support/entries.js';
import { userNamed } from '../../support/identities.js';
import { apiInstruments } from '../../support/metrics.js';
import { patience } from '../../support/patience.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { openSharedStore, type SharedStore } from '../../support/shared-store.js';
import { storeOf } from '../../support/stores.js';

const { log } = createRecordingLog();
const live = new LiveChats();
const timings = { queueMs: 1, providerMs: 1 };
const ok: Outcome = { kind: 'ok', text: 'Hello', model: 'm', ...timings };
const failed = (retryable: boolean): Outcome => ({
  kind: 'failed',
  code: 'provider_error',
  retryable,
  ...timings,
});
const blocked: Outcome = { kind: 'blocked', ...timings };
const cancelled: Outcome = { kind: 'cancelled', ...timings };
const me = userNamed('me');
const you = userNamed('you');
/** A later user with the name of an earlier one. */
const namesake = { ...me, id: 'given again' };
const limited = { code: 'rate_limited', status: 429 };
const notFound = { code: 'not_found' };
const underWay = { state: 'unknown' };

let shared: SharedStore;
let store: QueueStore;
let link: FleetLink;
let queue: Queue;
let chats: StoredChats;
/** Milliseconds since the epoch, for the rules alone. */
let now: number;
/** How many commands found no chat to join. */
let admissions: number;
let answers: StoredAnswers;

beforeAll(async () => {
  shared = await openSharedStore(storeOf('postgres'), log);
  store = shared.store;
  link = new FleetLink({ store, metrics: apiInstruments.metrics, ledger: noLedger, log });
  await link.start(live);
  queue = store.createQueue(queueName('openai'));
});
afterAll(async () => {
  await queue?.close();
  await link?.close();
  await shared?.stop();
});
beforeEach(() => {
  [now, admissions] = [Date.now(), 0];
  answers = new StoredAnswers(() => now);
  chats = storedChats();
});

const storedChats = ({ records = store.records } = {}) =>
  new StoredChats({
    ...{ records, link, answers, resultTtlMs: 60_000, now: () => now },
  });
/** Leaves so many bytes for more answers of the user, for as long as those are kept. */
const fill = (leftBytes: number) =>
  answers.reserve({ user: me.id, bytes: 67_108_864 - leftBytes, keptUntil: now + 70_000 });
interface Asked extends Partial<StoredChatCommand> {
  owner?: typeof me;
}
const turns: Turn[] = [{ role: 'user', content: 'Hello' }];
const command = (key: string | undefined, { owner = me, ...differs }: Asked = {}): StoredChatCommand => ({
  ...{ requestId: randomUUID(), user: owner.id, provider: 'openai', model: undefined },
  ...{ written: writeContent({ turns }), unfitFor: [], bytes: 5 },
  signal: new AbortController().signal,
  storeOptions: { owner, key, isAsync: false, onResolved: () => undefined },
  ...differs,
});
/** The command's chat, as the service opens it: if there is none, it is admitted and opened. */
const open = async (asked: StoredChatCommand, own: Partial<Attempt> = {}) => {
  const deadline = now + 10_000;
  const { joined, previousId } = await chats.find(asked, deadline);
  if (joined === undefined) admissions += 1;
  const { provider, model } = asked;
  const current = { provider, ...(model && { model }), ...own };
  const opened = joined ?? (await chats.open(asked, { deadline, current, previousId }));
  const { answer, ...chat } = opened.chat;
  const { result } = opened;
  return { chat, ...(result && { result }), answer, isNew: chat.id === asked.requestId };
};
const openMany = (count: number, key: string | undefined) =>
  Promise.all(Array.from({ length: count }, () => open(command(key))));
const end = (id: string, outcome: Outcome) =>
  store.records.create(resultKey(id), { value: encodeStoredResult(outcome, now), ttlMs: 60_000 });
/** Which of these chats can be read. */
const existing = async (ids: readonly string[]) => {
  const found = await Promise.allSettled(ids.map((id) => chats.read({ owner: me, id })));
  return ids.filter((_, n) => found[n]?.status === 'fulfilled');
};
/** Adds the chat's job. */
const add = async ({ chat }: ResolvedChat) => {
  const { id, deadline, expiresAt = 0 } = chat;
  const { written } = command(undefined);
  const job = { user: me.id, provider: 'openai', written, origin: originOfTest() } as const;
  await link.add(id, { ...job, deadline, keptUntil: expiresAt });
};
const take = async (id: string) => expect(await queue.remove(id)).toBe(1);
/** Adds the chat's job, and has a worker that records nothing do it, until it has ended. */
const work = async (opened: ResolvedChat, process: () => Promise<string>) => {
  await add(opened);
  const worker = store.createWorker(queueName('openai'), process, {});
  const states = async () => (await store.readJobs(queue, [opened.chat.id])).map(({ state }) => state);
  await vi.waitUntil(async () => /completed|failed/.test(String(await states())), patience);
  await worker.close();
};
const resultOf = async (id: string) => (await chats.read({ owner: me, id })).result;
const isCancelled = { outcome: { kind: 'cancelled' } };

describe('a command without a key', () => {
  it('opens a chat of its own, hashed as before there were parameters', async () => {
    const [one, two] = [command(undefined), command(undefined, { model: 'm' })];
    for (const asked of [one, two])
      expect(await open(asked)).toMatchObject({ isNew: true, chat: { id: asked.requestId } });
    const { chat, result } = await chats.read({ owner: me, id: two.requestId });
    const kept = { owner: 'me', ownerId: me.id, provider: 'openai', model: 'm', keptUntil: now + 70_000 };
    expect([chat, result]).toMatchObject([kept, underWay]);
    const before = createHash('sha256').update(JSON.stringify(['openai', null, turns]));
    const { requestHash } = (await chats.read({ owner: me, id: one.requestId })).chat;
    expect(requestHash).toBe(before.digest('base64url'));
  });

  it('whose answer would have no room beside those of its user -> is refused, until their records end', async () => {
    fill(100_000);
    const key = randomUUID();
    await open(command(key));
    await expect(open(command(undefined))).rejects.toMatchObject(limited);
    expect(await open(command(key))).toMatchObject({ isNew: false });
    for (const room of [{ owner: you }, { parameters: { maxOutputTokens: 10 } }])
      expect(await open(command(undefined, room))).toMatchObject({ isNew: true });
    now += 10_000 + 60_000 + 10_000;
    expect(await open(command(undefined))).toMatchObject({ isNew: true });
  });

  it('with a long list of fallbacks -> its record counts beside its answer', async () => {
    fill(67_000);
    const fallback = [{ provider: 'bedrock', model: 'm'.repeat(3000) }] as const;
    const short = command(undefined);
    await expect(open(command(undefined), { fallback: [...fallback] })).rejects.toMatchObject(limited);
    expect(await open(short)).toMatchObject({ isNew: true });
  });
});

describe('a command with a key', () => {
  it('that stands for a chat -> joins it, at its own deadline; a look for it stores nothing', async () => {
    const asked = command(randomUUID());
    expect(await chats.find(asked, now + 1000)).toEqual({});
    expect(await existing([asked.requestId])).toEqual([]);
    const current: Attempt = { provider: 'bedrock', fallback: [{ provider: 'anthropic' }] };
    const { chat, answer } = await open(asked, current);
    expect(chat).toEqual({ id: asked.requestId, deadline: now + 10_000, expiresAt: now + 70_000, current });
    now += 5000;
    expect(await open(command(asked.storeOptions.key))).toEqual({ chat, result: underWay, isNew: false });
    expect([admissions, answer === undefined]).toEqual([1, false]);
  });

  it('many at once -> open one chat, and keep no room for another', async () => {
    fill(20 * 66_500);
    const opened = await openMany(20, randomUUID());
    expect(opened.filter(({ isNew }) => isNew)).toHaveLength(1);
    expect(new Set(opened.map(({ chat }) => chat.id)).size).toBe(1);
    const others = await openMany(19, undefined);
    expect(others.map(({ isNew }) => isNew)).not.toContain(false);
  });

  it('many different ones at once -> one opens a chat, and the others leave nothing behind', async () => {
    const key = randomUUID();
    const asked = Array.from({ length: 10 }, (_, n) => command(key, { model: `m${n}` }));
    const opened = await Promise.allSettled(asked.map((each) => open(each)));
    expect(opened.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    // A deleted record ends after a millisecond.
    const ids = asked.map(({ requestId }) => requestId);
    await vi.waitFor(async () => expect(await existing(ids)).toHaveLength(1), patience);
  });

  const parameters = { maxOutputTokens: 5, stop: ['a', 'b'] };
  it.each<Partial<StoredChatCommand>>([
    { written: writeContent({ turns: [{ role: 'user', content: 'Bye' }] }) },
    { written: writeContent({ turns: [{ role: 'system', content: 'Hello' }] }) },
    { model: 'other' },
    { provider: 'bedrock' },
    { parameters: { ...parameters, seed: 1 } },
    { parameters: { ...parameters, stop: ['b', 'a'] } },
  ])('and another request than the chat has (%o) -> is refused', async (differs) => {
    const key = randomUUID();
    await open(command(key, { parameters }));
    const other = command(key, { parameters, ...differs });
    await expect(open(other)).rejects.toMatchObject({ code: 'idempotency_key_reused' });
  });

  it('and the same parameters in another order -> joins', async () => {
    const key = randomUUID();
    const { chat } = await open(command(key, { parameters }));
    const same = { stop: ['a', 'b'], seed: undefined, maxOutputTokens: 5 };
    expect(await open(command(key, { parameters: same }))).toMatchObject({ chat, isNew: false });
  });

  it.each([
    ['of another user', you],
    ['of a later user of the same name', namesake],
  ])('%s -> opens a chat of its own, which is joined from then on', async (_, owner) => {
    const key = randomUUID();
    await open(command(key));
    const { isNew, chat } = await open(command(key, { owner }));
    expect(isNew).toBe(true);
    expect(await open(command(key, { owner }))).toMatchObject({ isNew: false, chat: { id: chat.id } });
  });

  it.each<Outcome>([ok, failed(false), blocked, cancelled])(
    'of a chat that has ended with %o -> gets that outcome',
    async (outcome) => {
      const key = randomUUID();
      const { chat } = await open(command(key));
      await end(chat.id, outcome);
      now += 20_000;
      const result = { state: 'settled', outcome, settledAt: now - 20_000 };
      expect(await open(command(key))).toEqual({ chat, isNew: false, result });
      expect(admissions).toBe(1);
    },
  );

  it('of a chat that has failed for the moment, however many come -> makes one more attempt', async () => {
    const key = randomUUID();
    const { chat } = await open(command(key));
    await end(chat.id, failed(true));
    const opened = await openMany(10, key);
    expect(opened.filter(({ isNew }) => isNew)).toHaveLength(1);
    const [id = '', ...more] = new Set(opened.map((each) => each.chat.id));
    expect([id === chat.id, more]).toEqual([false, []]);
    await end(id, ok);
    expect(await open(command(key))).toMatchObject({ result: { outcome: ok } });
  });

  it.each([
    ['has no job', false, 9999],
    ['is queued, and may be about to run by another clock', true, 14_999],
  ])(
    'of a chat past its deadline that %s -> joins it for so long, and no longer',
    async (_, isQueued, lastMs) => {
      const key = randomUUID();
      const opened = await open(command(key));
      if (isQueued) await add(opened);
      now += lastMs;
      expect(await open(command(key))).toMatchObject({ isNew: false, chat: opened.chat });
      now += 1;
      expect(await open(command(key))).toMatchObject({ isNew: true });
      if (isQueued) await take(opened.chat.id);
    },
  );
});

describe('a store that does not answer', () => {
  const never = () => new Promise<never>(() => undefined);
  const silent = { read: never, create: never, readAll: never, replace: never };
  const current = { provider: 'openai' } as const;
  const name = { owner: me, id: randomUUID() };
  const find = (deadline: number) => chats.find(command('k'), deadline);
  const begin = (deadline: number) => chats.open(command('k'), { deadline, current });

  it.each<[string, (deadline: number) => Promise<unknown>, leftMs: number, afterMs: number, string]>([
    ['to look for a chat', find, 50, 50, 'timeout'],
    ['to open one', begin, 50, 50, 'timeout'],
    ['to read one', () => chats.read(name), 60_000, 2500, 'queue_unavailable'],
    ['to cancel one', () => chats.cancel(name), 60_000, 2500, 'queue_unavailable'],
  ])('is asked %s -> it fails in time', async (_, work, leftMs, afterMs, code) => {
    chats = storedChats({ records: { ...store.records, ...silent } as typeof store.records });
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const ended = vi.fn();
    const refused = expect(work(now + leftMs).finally(ended)).rejects.toMatchObject({ code });
    await vi.advanceTimersByTimeAsync(afterMs - 1);
    expect(ended).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    vi.useRealTimers();
    await refused;
  });

  it('but fails -> queue_unavailable', async () => {
    chats = storedChats({ records: { ...store.records, read: () => Promise.reject(new Error('down')) } });
    await expect(open(command(randomUUID()))).rejects.toMatchObject({ code: 'queue_unavailable' });
  });

  it('as a chat is cancelled that may still be added -> it is cancelled once the store is back', async () => {
    const { chat } = await open(command(undefined));
    let isAway = true;
    const read = (key: string) => (isAway ? Promise.reject(new Error('away')) : store.records.read(key));
    chats = storedChats({ records: { ...store.records, read } });
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    chats.cancelUnconfirmed({ owner: me, id: chat.id });
    await vi.advanceTimersByTimeAsync(999);
    isAway = false;
    await vi.advanceTimersByTimeAsync(1);
    vi.useRealTimers();
    await vi.waitFor(async () => expect(await resultOf(chat.id)).toMatchObject(isCancelled), patience);
  });
});

describe('a stored chat', () => {
  it('belongs to its owner, also under another name -> nobody else reads or cancels it', async () => {
    const { chat } = await open(command(undefined));
    for (const name of [
      { owner: you, id: chat.id },
      { owner: namesake, id: chat.id },
      { owner: me, id: randomUUID() },
    ]) {
      await expect(chats.read(name)).rejects.toMatchObject(notFound);
      await expect(chats.cancel(name)).rejects.toMatchObject(notFound);
    }
    await end(chat.id, ok);
    const { result } = await chats.read({ owner: { ...me, name: 'renamed' }, id: chat.id });
    expect(result).toEqual({ state: 'settled', outcome: ok, settledAt: now });
  });

  it.each([
    ['has replied', async () => encodeOutcome(ok), ok],
    ['has broken', () => Promise.reject(new Error('broke')), givenUpOutcome],
  ])(
    'whose worker %s, but could not record it -> keeps that outcome, whatever follows',
    async (_, process, outcome) => {
      const key = randomUUID();
      const opened = await open(command(key));
      await work(opened, process);
      const name = { owner: me, id: opened.chat.id };
      await chats.cancel(name);
      const result = await resultOf(name.id);
      expect(result).toEqual({ state: 'settled', outcome, settledAt: expect.any(Number) });
      await take(name.id);
      await chats.cancel(name);
      expect(await resultOf(name.id)).toEqual(result);
      if (outcome === ok)
        expect(await open(command(key))).toMatchObject({ isNew: false, result: { outcome } });
    },
  );

  it.each<[string, object, (opened: ResolvedChat) => Promise<unknown>]>([
    ['is under way', isCancelled, async () => undefined],
    ['has ended', { outcome: ok }, ({ chat }) => end(chat.id, ok)],
    ['has expired', underWay, async () => (now += 10_000)],
  ])('that %s is cancelled, also twice -> %o', async (_, result, prepare) => {
    const opened = await open(command(undefined));
    const { id } = opened.chat;
    await prepare(opened);
    for (let n = 0; n < 2; n += 1) await chats.cancel({ owner: me, id });
    expect(await resultOf(id)).toMatchObject(result);
  });
});

describe('a chat that an operator cancels', () => {
  /** Ids of the users that were audited. */
  let audited: string[];
  beforeEach(() => (audited = []));
  const audit = async (user: string) => void audited.push(user);
  const failure = new Failure('database_unavailable');

  const addJob = (jobId: string, own: object = {}) => {
    const { written } = command(undefined);
    const job = { user: you.id, provider: 'openai', written, origin: originOfTest() } as const;
    return link.add(jobId, { ...job, deadline: now + 10_000, ...own });
  };

  it.each<[string, object, string[], (opened: ResolvedChat) => Promise<unknown>]>([
    ['is under way', isCancelled, [me.id], async () => undefined],
    ['has ended', { outcome: ok }, [], ({ chat }) => end(chat.id, ok)],
    ['has expired', underWay, [], async () => (now += 10_000)],
    ['was cancelled', isCancelled, [], ({ chat: { id } }) => chats.cancel({ owner: me, id })],
  ])('is stored and %s -> %o, audited as of %j', async (_, result, users, prepare) => {
    const opened = await open(command(undefined));
    await prepare(opened);
    await chats.cancelAny(opened.chat.id, audit);
    expect([await resultOf(opened.chat.id), audited]).toMatchObject([result, users]);
  });

  it.each([1, 5])(
    'is not stored, and its attempt %d waits -> it ends for who waits, and its job is gone',
    async (n) => {
      const id = randomUUID();
      const { outcome } = attach(live, id);
      const jobId = n === 1 ? id : `${id}-${n}`;
      await addJob(jobId, n > 1 ? { chatId: id, attempt: n } : {});
      await chats.cancelAny(id, audit);
      expect([await outcome, audited]).toMatchObject([{ kind: 'cancelled' }, [you.id]]);
      const jobs = () => store.readJobs(queue, [jobId]);
      await vi.waitFor(async () => expect(await jobs()).toEqual([{ state: 'unknown' }]), patience);
    },
  );

  it('cannot be audited -> goes on', async () => {
    const { id: storedId } = (await open(command(undefined))).chat;
    const id = randomUUID();
    await addJob(id);
    for (const each of [storedId, id])
      await expect(chats.cancelAny(each, () => Promise.reject(failure))).rejects.toBe(failure);
    expect(await resultOf(storedId)).toEqual(underWay);
    await take(id);
  });

  it('is nowhere -> not_found, and nothing is audited', async () => {
    await expect(chats.cancelAny(randomUUID(), audit)).rejects.toMatchObject(notFound);
    expect(audited).toEqual([]);
  });
});

describe('a chat whose user is suspended', () => {
  it('is stored and followed here -> is cancelled, and no other one', async () => {
    const follow = async (name: string) => {
      const opened = await open(command(undefined));
      const { id, expiresAt } = opened.chat;
      attach(live, id, { chat: { expiresAt }, command: { asker: { api: 'chat', name } } });
      return id;
    };
    const [theirs, another] = [await follow('wild'), await follow('calm')];
    attach(live, randomUUID(), { command: { asker: { api: 'chat', name: 'wild' } } });
    chats.cancelSuspended(live.all(), { isSuspended: (name) => name === 'wild' });
    await vi.waitFor(async () => expect(await resultOf(theirs)).toMatchObject(isCancelled), patience);
    expect(await resultOf(another)).toEqual(underWay);
  });
});

describe('a chat that a newer release has recorded', () => {
  const newer = { code: 'internal', retryable: true };
  const recordAsNewer = (id: string, key: string) =>
    store.records.create(key, { value: JSON.stringify({ v: 5, id }), ttlMs: 60_000 });

  it('is read or cancelled -> a failure that may be tried again, and not that it is missing', async () => {
    const name = { owner: me, id: randomUUID() };
    await recordAsNewer(name.id, chatKey(name.id));
    await expect(chats.read(name)).rejects.toMatchObject(newer);
    await expect(chats.cancel(name)).rejects.toMatchObject(newer);
  });

  it('with its outcome -> gets no other one', async () => {
    const asked = command('by a newer release');
    const { chat } = await open(asked);
    await recordAsNewer(chat.id, resultKey(chat.id));
    await expect(chats.read({ owner: me, id: chat.id })).rejects.toMatchObject(newer);
    await expect(open(asked)).rejects.toMatchObject(newer);
    expect(admissions).toBe(1);
  });

  it('whose worker could not record how it ended -> is not recorded as failed', async () => {
    const opened = await open(command('also by a newer release'));
    await work(opened, async () => '{"v":5}');
    await expect(chats.read({ owner: me, id: opened.chat.id })).rejects.toMatchObject(newer);
    expect(await store.records.read(resultKey(opened.chat.id))).toBeUndefined();
  });
});
