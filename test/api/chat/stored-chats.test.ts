import { createHash, randomUUID } from 'node:crypto';
import type { Queue } from 'bullmq';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ResolvedChat, StoredChatCommand } from '../../../api/chat/chat-command.js';
import { JobClient } from '../../../api/chat/jobs/job-client.js';
import { LiveChats } from '../../../api/chat/live-chats.js';
import { StoredChats } from '../../../api/chat/stored-chats.js';
import { parseConfig } from '../../../shared/config/config.js';
import type { Attempt } from '../../../shared/protocol/attempts.js';
import { queueName } from '../../../shared/protocol/messages.js';
import { encodeOutcome, givenUpOutcome, type Outcome } from '../../../shared/protocol/outcome.js';
import { chatKey, encodeStoredResult, resultKey } from '../../../shared/protocol/stored-chat.js';
import type { QueueStore } from '../../../shared/queue/queue-store.js';
import { migrateQueueStore, openQueueStore } from '../../../shared/queue/stores/open.js';
import { startEmptyDatabase } from '../../support/database.js';
import { userNamed } from '../../support/identities.js';
import { apiInstruments } from '../../support/metrics.js';
import { patience, patienceMs } from '../../support/patience.js';
import { createRecordingLog } from '../../support/recording-log.js';

const { log } = createRecordingLog();
const timings = { queueMs: 1, providerMs: 1 };
const ok: Outcome = { kind: 'ok', text: 'Hello', model: 'm', ...timings };
const failed = (retryable: boolean): Outcome => ({
  kind: 'failed',
  code: 'provider_error',
  retryable,
  ...timings,
});

const me = userNamed('me');

let database: Awaited<ReturnType<typeof startEmptyDatabase>>;
let store: QueueStore;
let jobs: JobClient;
let queue: Queue;
let chats: StoredChats;
/** Milliseconds since the epoch, for the rules alone. */
let now: number;
/** How many commands found no chat to join. */
let admissions: number;
/** The longest answer, in tokens; a tenth of that of anthropic. */
let maxOutputTokens: number;

beforeAll(async () => {
  database = await startEmptyDatabase();
  const config = parseConfig({ DATABASE_URL: database.url }, 'config');
  await migrateQueueStore(config);
  store = openQueueStore(config, log);
  expect(await store.whenReady(AbortSignal.timeout(patienceMs))).toBe(true);
  jobs = await JobClient.open({
    store,
    chats: new LiveChats(),
    metrics: apiInstruments.metrics,
    log,
  });
  queue = store.createQueue(queueName('openai'));
});
afterAll(async () => {
  await queue?.close();
  await jobs?.close();
  await store?.close();
  await database?.stop();
});
beforeEach(() => {
  now = Date.now();
  admissions = 0;
  maxOutputTokens = 4096;
  chats = storedChats();
});

const storedChats = ({ records = store.records } = {}) =>
  new StoredChats({
    records,
    jobClient: () => jobs,
    resultTtlMs: 60_000,
    maxOutputTokens: (provider) => (provider === 'anthropic' ? 10 : 1) * maxOutputTokens,
    now: () => now,
  });
const never = () => new Promise<never>(() => undefined);
const command = (key: string | undefined, differs: Partial<StoredChatCommand> = {}): StoredChatCommand => ({
  requestId: randomUUID(),
  user: 'me',
  provider: 'openai',
  model: undefined,
  turns: [{ role: 'user', content: 'Hello' }],
  signal: new AbortController().signal,
  storeOptions: { owner: me, key, isAsync: false, onResolved: () => undefined },
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
const underWay = { state: 'unknown' };
const end = (id: string, outcome: Outcome) =>
  store.records.create(resultKey(id), { value: encodeStoredResult(outcome, now), ttlMs: 60_000 });
/** Adds the chat's job. */
const add = async ({ chat }: ResolvedChat) => {
  const { id, deadline, expiresAt = 0 } = chat;
  const { turns } = command(undefined);
  await jobs.add(id, { user: me.id, provider: 'openai', turns, deadline, keptUntil: expiresAt });
};
const take = async (id: string) => {
  expect(await queue.remove(id)).toBe(1);
};
/** Adds the chat's job, and has it done by a worker that records nothing. */
const work = async (opened: ResolvedChat, process: () => Promise<string>) => {
  await add(opened);
  const worker = store.createWorker(queueName('openai'), process, {});
  const { jobId, provider } = { jobId: opened.chat.id, provider: 'openai' as const };
  const state = async () => (await jobs.read({ jobId, provider })).state;
  await vi.waitUntil(async () => (await state()) === 'settled', patience);
  await worker.close();
};
/** Adds the chat's job, and has it run until `end` is called. */
const run = async (opened: ResolvedChat) => {
  const started = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<string>();
  const worker = store.createWorker(
    queueName('openai'),
    () => {
      started.resolve();
      return ended.promise;
    },
    {},
  );
  await add(opened);
  await started.promise;
  return {
    end: async () => {
      ended.resolve(encodeOutcome(ok));
      await worker.close();
    },
  };
};
const notFound = expect.objectContaining({ code: 'not_found' });

describe('open', () => {
  it('creates a chat for each command without a key', async () => {
    const [one, two] = [command(undefined), command(undefined, { model: 'm' })];
    expect(await open(one)).toMatchObject({ isNew: true, chat: { id: one.requestId } });
    expect(await open(two)).toMatchObject({ isNew: true, chat: { id: two.requestId } });
    expect(admissions).toBe(2);
    const { chat, result } = await chats.read({ owner: me, id: two.requestId });
    expect(chat).toMatchObject({
      owner: 'me',
      ownerId: me.id,
      provider: 'openai',
      model: 'm',
      keptUntil: now + 70_000,
    });
    expect(result).toEqual({ state: 'unknown' });
  });

  it('comes after a look for the chat that stores nothing', async () => {
    const asked = command(randomUUID());
    expect(await chats.find(asked, now + 1000)).toEqual({});
    await expect(chats.read({ owner: me, id: asked.requestId })).rejects.toEqual(notFound);
    expect(await open(asked)).toMatchObject({ isNew: true });
  });

  it('is not needed where the key stands for a chat, which the look for it joins', async () => {
    const key = randomUUID();
    const { chat, answer } = await open(command(key));
    expect(await open(command(key))).toEqual({ chat, result: underWay, isNew: false });
    expect([admissions, answer === undefined]).toEqual([1, false]);
  });

  it('stores where the chat is asked for, and joins it at its own deadline', async () => {
    const key = randomUUID();
    const current: Attempt = { provider: 'bedrock', fallback: [{ provider: 'anthropic' }] };
    const { chat } = await open(command(key), current);
    expect(chat).toEqual({ id: chat.id, deadline: now + 10_000, expiresAt: now + 70_000, current });
    now += 5000;
    expect(await open(command(key))).toMatchObject({ isNew: false, chat });
  });

  it.each<[string, number, string]>([
    ['when the deadline passes first', 50, 'timeout'],
    ['when the store has not answered in time', 60_000, 'queue_unavailable'],
  ])('throws %s, as the look for the chat does', async (_, leftMs, code) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const silent = { ...store.records, read: never, create: never, readAll: never, replace: never };
    const silentChats = storedChats({ records: silent as typeof store.records });
    const asked = command(randomUUID());
    const deadline = now + leftMs;
    const refused = [
      silentChats.find(asked, deadline),
      silentChats.open(asked, { deadline, current: { provider: 'openai' } }),
    ].map((promise) => expect(promise).rejects.toMatchObject({ code }));
    vi.advanceTimersByTime(2500);
    vi.useRealTimers();
    await Promise.all(refused);
  });

  it('creates one chat when many commands with one key come at once', async () => {
    const key = randomUUID();
    const asked = Array.from({ length: 20 }, () => command(key));
    const opened = await Promise.all(asked.map((each) => open(each)));
    expect(opened.filter(({ isNew }) => isNew)).toHaveLength(1);
    expect(new Set(opened.map(({ chat }) => chat.id)).size).toBe(1);
    // The chats that the others had created are deleted.
    const ids = asked.map(({ requestId }) => requestId).filter((id) => id !== opened[0]?.chat.id);
    const found = await Promise.allSettled(ids.map((id) => chats.read({ owner: me, id })));
    expect(found.filter(({ status }) => status === 'fulfilled')).toEqual([]);
  });

  it.each([
    { turns: [{ role: 'user' as const, content: 'Bye' }] },
    { turns: [{ role: 'system' as const, content: 'Hello' }] },
    { model: 'other' },
    { provider: 'bedrock' as const },
    { parameters: { seed: 1 } },
  ])('refuses a key that was used with another request: %o', async (differs) => {
    const key = randomUUID();
    await open(command(key));
    await expect(open(command(key, differs))).rejects.toMatchObject({ code: 'idempotency_key_reused' });
  });

  it('joins a request with the same parameters in another order', async () => {
    const key = randomUUID();
    const asked = { maxOutputTokens: 5, stop: ['a', 'b'] };
    const first = await open(command(key, { parameters: asked }));
    const same = { stop: ['a', 'b'], seed: undefined, maxOutputTokens: 5 };
    const joined = await open(command(key, { parameters: same }));
    expect(joined).toMatchObject({ chat: first.chat, isNew: false });
    const other = { ...asked, stop: ['b', 'a'] };
    const reused = open(command(key, { parameters: other }));
    await expect(reused).rejects.toMatchObject({ code: 'idempotency_key_reused' });
  });

  it.each([undefined, {}])(
    'hashes a request without parameters as before there were any: %o',
    async (none) => {
      const asked = command(randomUUID(), { parameters: none });
      await open(asked);
      const { chat } = await chats.read({ owner: me, id: asked.requestId });
      const before = createHash('sha256').update(JSON.stringify(['openai', null, asked.turns]));
      expect(chat.requestHash).toBe(before.digest('base64url'));
    },
  );

  it('does not share a key with another user', async () => {
    const key = randomUUID();
    await open(command(key));
    const storeOptions = { ...command(key).storeOptions, owner: userNamed('you') };
    expect(await open(command(key, { storeOptions }))).toMatchObject({ isNew: true });
  });

  it('is refused when the answers of the user would have no room, until their records end (finding S6)', async () => {
    maxOutputTokens = 16_777_216;
    const key = randomUUID();
    await open(command(key));
    await expect(open(command(undefined))).rejects.toMatchObject({ code: 'rate_limited', status: 429 });
    expect(await open(command(key))).toMatchObject({ isNew: false });
    const storeOptions = { ...command(undefined).storeOptions, owner: userNamed('you') };
    expect(
      await open(command(undefined, { storeOptions, parameters: { maxOutputTokens: 10 } })),
    ).toMatchObject({ isNew: true });
    now += 10_000 + 60_000 + 10_000;
    expect(await open(command(undefined))).toMatchObject({ isNew: true });
  });

  it.each<Attempt>([
    { provider: 'anthropic', earlier: [{ provider: 'openai', code: 'overloaded', retryable: true }] },
    { provider: 'openai', fallback: [{ provider: 'bedrock' }, { provider: 'anthropic' }] },
  ])('reserves room for the longest answer of those who may be asked: %o (finding S6)', async (attempt) => {
    maxOutputTokens = 1_677_721;
    await open(command(undefined), attempt);
    await expect(open(command(undefined))).rejects.toMatchObject({ code: 'rate_limited' });
  });

  it('keeps no room for the chats of commands that have joined another (finding S6)', async () => {
    maxOutputTokens = Math.floor(16_777_216 / 20);
    const key = randomUUID();
    await Promise.all(Array.from({ length: 20 }, () => open(command(key))));
    const others = await Promise.all(Array.from({ length: 19 }, () => open(command(undefined))));
    expect(others.map(({ isNew }) => isNew)).not.toContain(false);
  });

  it.each([
    ok,
    failed(false),
    { kind: 'blocked', ...timings } as const,
    { kind: 'cancelled', ...timings } as const,
  ])('replays the outcome %o', async (outcome) => {
    const key = randomUUID();
    const { chat } = await open(command(key));
    await end(chat.id, outcome);
    now += 20_000;
    const result = { state: 'settled', outcome, settledAt: now - 20_000 };
    expect(await open(command(key))).toEqual({ chat, isNew: false, result });
    expect(admissions).toBe(1);
  });

  it('makes one more attempt after a transient failure, however many commands come', async () => {
    const key = randomUUID();
    const { chat } = await open(command(key));
    await end(chat.id, failed(true));
    const opened = await Promise.all(Array.from({ length: 10 }, () => open(command(key))));
    expect(opened.filter(({ isNew }) => isNew)).toHaveLength(1);
    const [id, ...more] = new Set(opened.map((each) => each.chat.id));
    expect([id === chat.id, more]).toEqual([false, []]);
    await end(id ?? '', ok);
    expect(await open(command(key))).toMatchObject({ result: { outcome: ok } });
  });

  it('leaves nothing behind of a command that is refused for its key after it had created a chat', async () => {
    const key = randomUUID();
    const asked = Array.from({ length: 10 }, (_, n) => command(key, { model: `m${n}` }));
    const opened = await Promise.allSettled(asked.map((each) => open(each)));
    expect(opened.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    const ids = asked.map(({ requestId }) => requestId);
    // A deleted record ends after a millisecond.
    await vi.waitFor(async () => {
      const found = await Promise.allSettled(ids.map((id) => chats.read({ owner: me, id })));
      expect(found.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    }, patience);
  });

  it('joins a job that runs, or may be about to by another clock, past its deadline', async () => {
    const key = randomUUID();
    const opened = await open(command(key));
    await add(opened);
    now += 14_999;
    expect(await open(command(key))).toMatchObject({ isNew: false, chat: opened.chat });
    now -= 14_999;
    await take(opened.chat.id);
    const running = await run(opened);
    now += 24_999;
    expect(await open(command(key))).toMatchObject({ isNew: false, chat: opened.chat });
    now += 1;
    expect(await open(command(key))).toMatchObject({ isNew: true });
    await running.end();
  });

  it('makes another attempt for a job that is still queued five seconds past its deadline', async () => {
    const key = randomUUID();
    const opened = await open(command(key));
    await add(opened);
    now += 15_000;
    expect(await open(command(key))).toMatchObject({ isNew: true });
    await take(opened.chat.id);
  });

  it('replays the outcome of a job whose worker could not record it, also when the job is gone', async () => {
    const key = randomUUID();
    const opened = await open(command(key));
    await work(opened, async () => encodeOutcome(ok));
    expect(await open(command(key))).toMatchObject({ isNew: false, result: { outcome: ok } });
    await take(opened.chat.id);
    expect(await open(command(key))).toMatchObject({ isNew: false, result: { outcome: ok } });
  });

  it('makes another attempt once the deadline has passed without an outcome', async () => {
    const key = randomUUID();
    const { chat } = await open(command(key));
    now += 9_999;
    expect(await open(command(key))).toMatchObject({ isNew: false, chat });
    now += 1;
    const again = await open(command(key));
    expect(again.isNew).toBe(true);
    expect(again.chat.id).not.toBe(chat.id);
  });

  it('does not share a key with an earlier user of the same name', async () => {
    const key = randomUUID();
    const { chat } = await open(command(key));
    const storeOptions = { ...command(key).storeOptions, owner: { ...me, id: 'given again' } };
    const theirs = await open(command(key, { storeOptions }));
    expect(theirs.isNew).toBe(true);
    expect(theirs.chat.id).not.toBe(chat.id);
    expect(await open(command(key, { storeOptions }))).toMatchObject({
      isNew: false,
      chat: { id: theirs.chat.id },
    });
  });

  it('throws queue_unavailable when the store cannot be read', async () => {
    const records = { ...store.records, read: () => Promise.reject(new Error('down')) };
    chats = storedChats({ records });
    await expect(open(command(randomUUID()))).rejects.toMatchObject({ code: 'queue_unavailable' });
  });
});

describe('read', () => {
  it('shows a chat and its outcome to its owner alone', async () => {
    const { chat } = await open(command(undefined));
    await end(chat.id, ok);
    const { result } = await chats.read({ owner: me, id: chat.id });
    expect(result).toEqual({ state: 'settled', outcome: ok, settledAt: now });
    await expect(chats.read({ owner: userNamed('you'), id: chat.id })).rejects.toEqual(notFound);
    await expect(chats.read({ owner: me, id: randomUUID() })).rejects.toEqual(notFound);
  });

  it('hides a chat from a later user with the name of its owner', async () => {
    const { chat } = await open(command(undefined));
    const namesake = { owner: { ...me, id: 'given again' }, id: chat.id };
    await expect(chats.read(namesake)).rejects.toEqual(notFound);
    await expect(chats.cancel(namesake)).rejects.toEqual(notFound);
    expect(await chats.read({ owner: { ...me, name: 'renamed' }, id: chat.id })).toBeDefined();
  });
});

describe('read, of a chat whose worker could not record the outcome', () => {
  it.each([
    ['its reply', async () => encodeOutcome(ok), ok],
    ['that it broke', () => Promise.reject(new Error('broke')), givenUpOutcome],
  ])('shows %s as long as the chat is kept', async (_, process, outcome) => {
    const opened = await open(command(undefined));
    await work(opened, process);
    const name = { owner: me, id: opened.chat.id };
    const { result } = await chats.read(name);
    expect(result).toEqual({ state: 'settled', outcome, settledAt: expect.any(Number) });
    await take(name.id);
    await chats.cancel(name);
    expect((await chats.read(name)).result).toEqual(result);
  });
});

describe('a chat that a newer release has recorded', () => {
  const newer = { code: 'internal', retryable: true };
  const recordAsNewer = (id: string, key: string) =>
    store.records.create(key, { value: JSON.stringify({ v: 3, id }), ttlMs: 60_000 });

  it('is not reported as missing: the failure is retryable', async () => {
    const id = randomUUID();
    await recordAsNewer(id, chatKey(id));
    await expect(chats.read({ owner: me, id })).rejects.toMatchObject(newer);
    await expect(chats.cancel({ owner: me, id })).rejects.toMatchObject(newer);
  });

  it('gets no other outcome than the recorded one', async () => {
    const asked = command('by a newer release');
    const { chat } = await open(asked);
    await recordAsNewer(chat.id, resultKey(chat.id));
    await expect(chats.read({ owner: me, id: chat.id })).rejects.toMatchObject(newer);
    await expect(open(asked)).rejects.toMatchObject(newer);
    expect(admissions).toBe(1);
  });

  it('is not recorded as failed when its worker could not record how it ended', async () => {
    const opened = await open(command('also by a newer release'));
    await add(opened);
    const worker = store.createWorker(queueName('openai'), async () => '{"v":3}', {});
    await new Promise((resolve) => worker.once('completed', resolve));
    await worker.close();
    await expect(chats.read({ owner: me, id: opened.chat.id })).rejects.toMatchObject(newer);
    expect(await store.records.read(resultKey(opened.chat.id))).toBeUndefined();
  });
});

describe('cancel', () => {
  it('does not replace the outcome of the job, also when nobody has recorded it', async () => {
    const opened = await open(command(undefined));
    await work(opened, async () => encodeOutcome(ok));
    const name = { owner: me, id: opened.chat.id };
    await chats.cancel(name);
    expect((await chats.read(name)).result).toMatchObject({ outcome: ok });
  });

  it('changes nothing about a chat that has expired', async () => {
    const { chat } = await open(command(undefined));
    const name = { owner: me, id: chat.id };
    now += 10_000;
    await chats.cancel(name);
    expect((await chats.read(name)).result).toEqual({ state: 'unknown' });
  });

  it('ends a chat that still runs at its deadline', async () => {
    const opened = await open(command(undefined));
    const name = { owner: me, id: opened.chat.id };
    const running = await run(opened);
    now += 10_000;
    await chats.cancel(name);
    expect((await chats.read(name)).result).toMatchObject({ outcome: { kind: 'cancelled' } });
    await running.end();
  });

  it('ends a chat of the owner as cancelled, and may be repeated', async () => {
    const { chat } = await open(command(undefined));
    const name = { owner: me, id: chat.id };
    await expect(chats.cancel({ ...name, owner: userNamed('you') })).rejects.toEqual(notFound);
    expect((await chats.read(name)).result).toEqual({ state: 'unknown' });
    await chats.cancel(name);
    await chats.cancel(name);
    expect((await chats.read(name)).result).toMatchObject({ outcome: { kind: 'cancelled' } });
    await expect(chats.cancel({ owner: me, id: randomUUID() })).rejects.toEqual(notFound);
  });

  it('changes nothing about a chat that has ended', async () => {
    const { chat } = await open(command(undefined));
    const name = { owner: me, id: chat.id };
    await end(chat.id, ok);
    await chats.cancel(name);
    expect((await chats.read(name)).result).toMatchObject({ outcome: ok });
  });
});
