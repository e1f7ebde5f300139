import { getEventListeners } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ChatCommand } from '../../../api/chat/chat-command.js';
import { ChatService } from '../../../api/chat/chat-service.js';
import type { JobClient } from '../../../api/chat/jobs/job-client.js';
import type { JobResult } from '../../../api/chat/jobs/job-records.js';
import { LiveChats, type Refusal } from '../../../api/chat/live-chats.js';
import { UserShares } from '../../../api/chat/user-shares.js';
import { Failure } from '../../../shared/failures.js';
import { Heartbeats } from '../../../shared/fleet/heartbeats.js';
import { LivePools } from '../../../shared/fleet/live-pools.js';
import type { Outcome } from '../../../shared/protocol/outcome.js';
import type { StoredChat } from '../../../shared/protocol/stored-chat.js';
import { command } from '../../support/attached.js';
import { userNamed } from '../../support/identities.js';

const ok: Outcome = { kind: 'ok', text: 'Hello', callId: 'call', model: 'm', queueMs: 1, providerMs: 1 };
const limited = expect.objectContaining({ code: 'rate_limited', status: 429 });
const stored = 'was stored';

let chats: LiveChats;
let shares: UserShares;
let chatService: ChatService;
let client: AbortController;
let chat: StoredChat;
/** The requests to the workers: for the text from a place, or to stop sending. */
let asked: (number | string)[];
/** The names by which the workers know the readers. */
let readers: Set<string | undefined>;
let written: string[];
let refused: Refusal['code'][];
let arrived: number;
/** The result of the look for the chat of a key. */
let find: () => Promise<object>;
/** Undefined while the store has not been reached. */
let connected: typeof jobs | undefined;

const jobs: Pick<
  JobClient,
  'pools' | 'check' | 'add' | 'read' | 'cancel' | 'cancelUnconfirmed' | 'requestResend'
> = {
  pools: new LivePools(new Heartbeats({ since: Number.NEGATIVE_INFINITY })),
  check: async () => {},
  add: async () => {},
  read: async () => ({ state: 'running' }),
  cancel: () => void asked.push('cancel'),
  cancelUnconfirmed: () => void asked.push('cancel unconfirmed'),
  requestResend: (_, { reader, from, left }) => {
    readers.add(reader);
    asked.push(left ? 'left' : from);
  },
};

const start = (limits: ConstructorParameters<typeof UserShares>[0] = {}) => {
  chats = new LiveChats();
  shares = new UserShares(limits);
  chats.listen(shares);
  chats.listen({
    refused: (_, { code }) => void refused.push(code),
    opened: () => {
      arrived += 1;
    },
  });
  chatService = new ChatService({
    ...{ jobClient: () => connected, chats, shares },
    storedChats: {
      find: () => find(),
      open: () => Promise.reject(new Error(stored)),
      cancelUnconfirmed: () => void asked.push('cancel unconfirmed'),
    },
    ...{ timeoutMs: 60_000, maxMs: 60_000, maxStreamMs: 60_000 },
  });
};

beforeEach(() => {
  vi.useFakeTimers({
    toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date', 'performance'],
  });
  client = new AbortController();
  [asked, written, refused, readers, arrived] = [[], [], [], new Set(), 0];
  const deadline = Date.now() + 60_000;
  chat = {
    id: 'one',
    provider: 'openai',
    ownerId: 'me',
    deadline,
    keptUntil: deadline + 60_000,
  } as StoredChat;
  find = async () => ({});
  connected = jobs;
  start();
});
afterEach(() => {
  expect([vi.getTimerCount(), getEventListeners(client.signal, 'abort'), chats.all()]).toEqual([0, [], []]);
  vi.useRealTimers();
});

const sink = {
  begin: () => {},
  write: (text: string) => {
    written.push(text);
    return true;
  },
  drained: async () => {},
};

interface Reading {
  offset?: number;
  result?: JobResult;
  of?: StoredChat;
}

function follow({ offset = 0, result = { state: 'running' }, of = chat }: Reading = {}): Promise<unknown> {
  const from = offset > 0 ? { callId: 'call', offset } : undefined;
  const reply = chatService.follow(of, result, { sink, from, signal: client.signal });
  reply.catch(() => {});
  return reply;
}
const receive = (at: number, text: string, callId = 'call') => {
  for (const reader of readers) chats.onDelta({ jobId: 'one', ...(reader && { reader }), callId, at, text });
};
const settled = (outcome: Outcome): JobResult => ({ state: 'settled', outcome });
const settle = (outcome: Outcome = ok) => chats.onOutcome('one', outcome);

describe('follow', () => {
  // Finding M7.
  it('ends as the credentials of its reader do, and leaves the chat alone', async () => {
    const reply = follow();
    client.abort(new Failure('unauthorized'));
    await expect(reply).rejects.toMatchObject({ code: 'unauthorized' });
    expect(asked).toEqual([0, 'left']);
  });

  it('asks the worker for the text, from where the reader has got to, and ends with the outcome', async () => {
    const reply = follow({ offset: 1 });
    expect(asked).toEqual([1]);
    receive(1, 'el');
    settle();
    expect(await reply).toEqual({ kind: 'completed', completion: ok });
    expect([written, asked]).toEqual([['el', 'lo'], [1]]);
  });

  it('asks for nothing while the chat is in the queue (finding S7)', async () => {
    const reply = follow({ result: { state: 'queued' } });
    vi.advanceTimersByTime(10_000);
    expect(asked).toEqual([]);
    chats.find('one')?.seen(Date.now(), { isRunning: true });
    expect(asked).toEqual([0]);
    settle();
    await reply;
  });

  it('writes what is left of a chat that has ended', async () => {
    await follow({ offset: 2, result: settled(ok) });
    expect([written, asked]).toEqual([['llo'], []]);
  });

  it('lets several read one chat, each from a place of its own', async () => {
    const replies = [follow(), follow({ offset: 3 })];
    expect(readers.size).toBe(2);
    receive(0, 'Hell');
    settle();
    await Promise.all(replies);
    expect(written).toEqual(['Hell', 'l', 'o', 'o']);
  });

  it.each([
    ['in the middle', () => client.abort(), false],
    ['before it begins', () => client.abort(), true],
  ])('leaves the chat alone when the reader leaves %s', async (_, leave, isEarly) => {
    if (isEarly) leave();
    const reply = follow();
    if (!isEarly) {
      receive(0, 'H');
      leave();
    }
    await expect(reply).rejects.toMatchObject({ code: 'timeout' });
    expect(asked).toEqual([0, 'left']);
  });

  it('ends with the failure of the chat, or at its deadline, but for the difference of clocks', async () => {
    const failed = follow();
    settle({ kind: 'failed', code: 'provider_error', retryable: true, queueMs: 1, providerMs: 1 });
    await expect(failed).rejects.toMatchObject({ code: 'provider_error' });
    const late = follow();
    receive(0, '');
    await vi.advanceTimersByTimeAsync(64_999);
    expect(chats.find('one')).toBeDefined();
    vi.advanceTimersByTime(1);
    await expect(late).rejects.toMatchObject({ code: 'timeout' });
  });

  it('never continues the text of another call', async () => {
    const reply = follow({ offset: 3 });
    receive(0, '', 'another');
    await expect(reply).rejects.toMatchObject({ code: 'internal', retryable: true });
    expect(written).toEqual([]);
  });

  it('is refused while the store has not been reached, and leaves nothing behind', async () => {
    connected = undefined;
    start({ maxInFlight: () => 1 });
    await expect(follow()).rejects.toMatchObject({ code: 'queue_unavailable' });
    expect(await follow({ result: settled(ok) })).toMatchObject({ kind: 'completed' });
  });

  it('is no arrival of a chat', async () => {
    const reply = follow();
    settle();
    await reply;
    await follow({ result: settled(ok) });
    expect([arrived, refused]).toEqual([0, []]);
  });
});

describe('the limits of a user', () => {
  const window = { maxPerWindow: 1, windowSeconds: 10 };
  /** The window has a timer of its own. */
  const endWindow = () => vi.advanceTimersByTime(10_000);
  const ask = (own: Partial<ChatCommand> = {}) =>
    chatService.createChat({ ...command(own), signal: client.signal });

  it('count reading a stream again as in flight, but not towards the window (finding P5)', async () => {
    start({ maxInFlight: () => 1, ...window });
    for (let n = 0; n < 5; n += 1) await follow({ result: settled(ok) });
    const running = follow();
    await expect(follow({ result: settled(ok) })).rejects.toEqual(limited);
    await expect(follow()).rejects.toEqual(limited);
    settle();
    await running;
    await follow({ result: settled(ok) });
    await shares.consume('me');
    await expect(shares.consume('me')).rejects.toEqual(limited);
    endWindow();
  });

  it('let their owner read twenty chats at once that are under way, and any number that have ended', async () => {
    const others = Array.from({ length: 20 }, (_, n) => ({ ...chat, id: `chat ${n}` }));
    const replies = others.map((of) => follow({ of }));
    await expect(follow()).rejects.toEqual(limited);
    expect(chats.find('one')).toBeUndefined();
    await follow({ result: settled(ok) });
    chats.onOutcome('chat 0', ok);
    await replies[0];
    const another = follow();
    await expect(follow()).rejects.toEqual(limited);
    for (const { id } of chats.all()) chats.onOutcome(id, ok);
    await Promise.all([...replies, another]);
  });

  it('count a request that joins a chat among those who read twenty', async () => {
    const others = Array.from({ length: 19 }, (_, n) => ({ ...chat, id: `chat ${n}` }));
    const replies = others.map((of) => follow({ of }));
    const { deadline, keptUntil: expiresAt } = chat;
    const joined = { id: 'one', deadline, expiresAt, current: { provider: 'openai' } };
    find = async () => ({ joined: { chat: joined, result: { state: 'running' } } });
    const storeOptions = { owner: userNamed('me'), key: 'k', isAsync: false, onResolved: () => {} };
    const read = () => ask({ storeOptions, stream: { sink, from: undefined } });
    const twentieth = read();
    await vi.waitUntil(() => chats.find('one'));
    await expect(read()).rejects.toEqual(limited);
    expect([arrived, refused]).toEqual([1, ['rate_limited']]);
    for (const { id } of chats.all()) chats.onOutcome(id, ok);
    await Promise.all([...replies, twentieth]);
  });

  it('count towards the window no request that those in flight refuse', async () => {
    start({ maxInFlight: () => 1, ...window });
    const running = follow();
    for (let n = 0; n < 5; n += 1) await expect(ask()).rejects.toEqual(limited);
    settle();
    await running;
    connected = undefined;
    await expect(ask()).rejects.toMatchObject({ code: 'queue_unavailable' });
    await expect(ask()).rejects.toEqual(limited);
    endWindow();
  });

  it('give the place of a request back that its rate refuses', async () => {
    start({ maxInFlight: () => 1, ...window });
    await shares.consume('me');
    for (let n = 0; n < 2; n += 1) {
      const { facts } = (await ask().catch((error: Failure) => error as Failure)) as Failure;
      // That of the window, which is a second where those in flight refuse.
      expect(facts.retryAfterMs).toBeGreaterThan(1000);
    }
    shares.enter('me')[Symbol.dispose]();
    endWindow();
  });

  it('are none of what operators see', async () => {
    start({ maxInFlight: () => 0 });
    await expect(ask()).rejects.toEqual(limited);
    expect([arrived, refused]).toEqual([0, []]);
  });
});

describe('a chat in the background', () => {
  it('is read by nobody, although its reader has got a part of the reply: it may be passed on', async () => {
    const { deadline, keptUntil: expiresAt } = chat;
    const joined = { id: 'one', deadline, expiresAt, current: { provider: 'openai' } };
    find = async () => ({ joined: { chat: joined, result: { state: 'running' } } });
    const storeOptions = { owner: userNamed('me'), key: 'k', isAsync: false, onResolved: () => {} };
    const asking = command({ storeOptions, stream: { sink, from: undefined } });
    const reply = chatService.createChat({ ...asking, signal: client.signal });
    const live = await vi.waitUntil(() => chats.find('one'));
    receive(0, 'Hel');
    expect([live.isRead, live.isStreamed]).toEqual([true, true]);
    client.abort();
    await expect(reply).rejects.toMatchObject({ code: 'timeout' });
    expect([live.isRead, live.isStreamed, live.isInBackground]).toEqual([false, false, true]);
    settle();
  });
});

describe('a request that is refused', () => {
  const storeOptions = { owner: userNamed('me'), key: 'k', isAsync: false, onResolved: () => {} };
  const ask = () => chatService.createChat({ ...command({ storeOptions }), signal: client.signal });

  it.each([
    ['why', new Failure('overloaded'), 'overloaded'],
    ['that it broke', new TypeError('x'), 'internal'],
  ])('has operators see %s, and no arrival of a chat', async (_, error, code) => {
    find = () => Promise.reject(error);
    await expect(ask()).rejects.toBe(error);
    expect([refused, arrived]).toEqual([[code], 0]);
  });

  it('counts as cancelled once its caller has left', async () => {
    client.abort();
    find = () => Promise.reject(new Failure('timeout'));
    await expect(ask()).rejects.toMatchObject({ code: 'timeout' });
    expect(refused).toEqual(['cancelled']);
  });

  it('stores nothing of a chat that no worker would do, and frees its place', async () => {
    start({ maxInFlight: () => 1 });
    for (let n = 0; n < 2; n += 1)
      await expect(ask()).rejects.toMatchObject({ code: 'provider_unavailable' });
    expect(refused).toEqual(['provider_unavailable', 'provider_unavailable']);
  });

  it('is not seen when its chat had ended before, whatever becomes of it', async () => {
    const joined = { chat: { id: 'one', deadline: chat.deadline, current: { provider: 'openai' } } };
    const outcome = { kind: 'blocked', queueMs: 1, providerMs: 1 } as const;
    find = async () => ({ joined: { ...joined, result: settled(outcome) } });
    await expect(ask()).rejects.toMatchObject({ code: 'content_blocked' });
    expect([refused, arrived]).toEqual([[], 0]);
  });
});
