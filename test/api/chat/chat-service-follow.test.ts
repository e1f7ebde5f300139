import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { LiveChat } from '../../../api/chat/live-chat.js';
import type { JobResult } from '../../../api/fleet-link/chat-receiver.js';
import { Failure } from '../../../shared/failures.js';
import type { Outcome } from '../../../shared/protocol/outcome.js';
import type { StoredChat } from '../../../shared/protocol/stored-chat.js';
import * as steps from '../../support/chat-service.js';

const { comeTo, ends, leaves, ms, ok, says, startChatService, turn, waits, withKey, withoutResends } = steps;

const limited = expect.objectContaining({ code: 'rate_limited', status: 429 });

let started: ReturnType<typeof startChatService>;
let chat: StoredChat;
const start = (limits = {}) => {
  started = startChatService({ limits, since: Number.NEGATIVE_INFINITY });
};
beforeEach(() => {
  start();
  const deadline = Date.now() + 60_000;
  const keptUntil = deadline + 60_000;
  chat = { id: 'one', provider: 'openai', ownerId: 'me', deadline, keptUntil } as StoredChat;
});
afterEach(() => started.end());

interface Reading {
  offset?: number;
  result?: JobResult;
  of?: StoredChat;
}

function follow({ offset = 0, result = { state: 'running' }, of = chat }: Reading = {}): Promise<unknown> {
  const { chatService, sink, client } = started;
  const from = offset > 0 ? { callId: 'call', offset } : undefined;
  const reply = chatService.follow(of, result, { sink, from, signal: client.signal });
  reply.catch(() => {});
  return reply;
}
const settled = (outcome: Outcome): JobResult => ({ state: 'settled', outcome });
const settle = (outcome: Outcome = ok) => started.chats.onOutcome('one', outcome);
/** A request with the key of a chat. */
const ask = () => started.ask({ storeOptions: withKey });
/** One that reads it as it is written. */
const read = () => started.ask({ storeOptions: withKey, stream: { sink: started.sink, from: undefined } });

/** The chat, once a request has come to it. */
async function attached(): Promise<LiveChat> {
  for (;;) {
    const found = started.chats.find('one');
    if (found) return found;
    await turn();
  }
}

describe('a stored chat that is followed', () => {
  const follows =
    (reading?: Reading): steps.Step =>
    (service) => {
      service.answer = follow(reading);
    };
  const replied = { kind: 'completed', completion: ok };
  const [timeout, ended] = [{ code: 'timeout' }, new Failure('unauthorized')];
  const code = 'provider_error';
  const failed = ends({ kind: 'failed', code, retryable: true, queueMs: 1, providerMs: 1 });
  // But for the difference of clocks.
  const late = [follows(), says(0, ''), ms(64_999)];

  it.each<steps.Row>([
    [
      'runs -> its place is asked for',
      [follows({ offset: 1 }), says(1, 'el'), ends()],
      replied,
      '1',
      'el|lo',
    ],
    ['has ended -> what is left', [follows({ offset: 2, result: settled(ok) })], replied, '', 'llo'],
    ['fails -> so does its reader', [follows(), failed], { code }, '0, left'],
    ['has credentials that end -> it is left alone', [follows(), leaves(ended)], ended, '0, left'],
    ['is left in the middle -> that is all', [follows(), says(0, 'H'), leaves()], timeout, '0, left', 'H'],
    ['is left before it begins -> it is left alone', [leaves(), follows()], timeout, '0, left'],
    ['is at its deadline -> it may end yet', [...late, withoutResends], waits, ''],
    ['is past its deadline -> it is over', [...late, ms(1), withoutResends], timeout, 'left'],
  ])('%s', (...row) => comeTo(started, row));

  it('has several readers -> each reads from a place of its own', async () => {
    const replies = [follow(), follow({ offset: 3 })];
    expect(started.readers.size).toBe(2);
    started.receive(0, 'Hell');
    settle();
    await Promise.all(replies);
    expect(started.written).toEqual(['Hell', 'l', 'o', 'o']);
  });

  it('cannot be asked for yet -> that is refused, and leaves nothing behind', async () => {
    start({ maxInFlight: () => 1 });
    started.isConnected = false;
    await expect(follow()).rejects.toMatchObject({ code: 'queue_unavailable' });
    expect(await follow({ result: settled(ok) })).toMatchObject({ kind: 'completed' });
  });
});

describe('the limits of a user', () => {
  const window = { maxPerMinute: 1 };
  /** The window has a timer of its own. */
  const endWindow = () => vi.advanceTimersByTime(60_000);

  it('meet a stream that is read again -> it counts as in flight, but not towards the window', async () => {
    start({ maxInFlight: () => 1, ...window });
    for (let n = 0; n < 5; n += 1) await follow({ result: settled(ok) });
    const running = follow();
    await expect(follow({ result: settled(ok) })).rejects.toEqual(limited);
    await expect(follow()).rejects.toEqual(limited);
    settle();
    await running;
    await follow({ result: settled(ok) });
    await started.shares.consume('me');
    await expect(started.shares.consume('me')).rejects.toEqual(limited);
    endWindow();
  });

  it('meet a request that joins a chat -> it counts among those who read twenty, and none that has ended', async () => {
    const { chats } = started;
    const others = Array.from({ length: 19 }, (_, n) => ({ ...chat, id: `chat ${n}` }));
    const replies = others.map((of) => follow({ of }));
    started.claim({ state: 'running' });
    const twentieth = read();
    await attached();
    await expect(read()).rejects.toEqual(limited);
    expect([started.opened, started.refused]).toEqual([1, ['rate_limited']]);
    await expect(follow()).rejects.toEqual(limited);
    await follow({ result: settled(ok) });
    for (const { id } of chats.all()) chats.onOutcome(id, ok);
    await Promise.all([...replies, twentieth]);
  });

  it('meet a request that those in flight refuse -> the window does not count it, nor do operators see it', async () => {
    start({ maxInFlight: () => 1, ...window });
    const running = follow();
    for (let n = 0; n < 5; n += 1) await expect(started.ask()).rejects.toEqual(limited);
    expect([started.opened, started.refused]).toEqual([0, []]);
    settle();
    await running;
    started.isConnected = false;
    await expect(started.ask()).rejects.toMatchObject({ code: 'queue_unavailable' });
    await expect(started.ask()).rejects.toEqual(limited);
    endWindow();
  });

  it('meet a request that its rate refuses -> its place is given back', async () => {
    start({ maxInFlight: () => 1, ...window });
    await started.shares.consume('me');
    for (let n = 0; n < 2; n += 1) {
      const { facts } = await started.ask().catch((error) => error);
      // That of the window, which is a second where those in flight refuse.
      expect(facts.retryAfterMs).toBeGreaterThan(1000);
    }
    started.shares.enter('me')[Symbol.dispose]();
    endWindow();
  });
});

describe('a chat in the background', () => {
  it('has lost a reader who had a part of the reply -> is read by nobody, and may be passed on', async () => {
    started.claim({ state: 'running' });
    const reply = read();
    const live = await attached();
    started.receive(0, 'Hel');
    expect([live.isRead, live.isStreamed]).toEqual([true, true]);
    started.client.abort();
    await expect(reply).rejects.toMatchObject({ code: 'timeout' });
    expect([live.isRead, live.isStreamed, live.isInBackground]).toEqual([false, false, true]);
    settle();
  });
});

describe('a request that is refused', () => {
  it.each([
    ['before it begins', new Failure('overloaded'), 'overloaded', false],
    ['because it broke', new TypeError('x'), 'internal', false],
    ['after its caller has left', new Failure('timeout'), 'cancelled', true],
  ])('%s -> operators see why, and no arrival of a chat', async (_, error, code, isLeft) => {
    if (isLeft) started.client.abort();
    started.find = () => Promise.reject(error);
    await expect(ask()).rejects.toBe(error);
    expect([started.refused, started.opened]).toEqual([[code], 0]);
  });

  it('because no worker would do its chat -> nothing is stored of it, and its place is free', async () => {
    start({ maxInFlight: () => 1 });
    for (let n = 0; n < 2; n += 1)
      await expect(ask()).rejects.toMatchObject({ code: 'provider_unavailable' });
    expect(started.refused).toEqual(['provider_unavailable', 'provider_unavailable']);
    expect(started.stored).toBe(0);
  });

  it('because its chat had ended so before -> operators do not see it', async () => {
    started.claim(settled({ kind: 'blocked', queueMs: 1, providerMs: 1 }));
    await expect(ask()).rejects.toMatchObject({ code: 'content_blocked' });
    expect([started.refused, started.opened]).toEqual([[], 0]);
  });
});

describe('a user who comes to streams again and again', () => {
  it('-> the next one is refused that asks with the key of a chat, and requests are not', async () => {
    start({ maxJoins: 2 });
    for (let n = 0; n < 2; n += 1) await started.shares.consumeJoin('me');
    started.claim({ state: 'running' });
    await expect(read()).rejects.toEqual(limited);
    const reply = ask();
    await attached();
    settle();
    expect(await reply).toMatchObject({ kind: 'completed' });
    // The counter ends.
    vi.advanceTimersByTime(10_000);
  });
});
