import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type ChatListener, LiveChats } from '../../../api/chat/live-chats.js';
import type { Outcome } from '../../../shared/protocol/outcome.js';
import { attach, leave } from '../../support/attached.js';

const blocked: Outcome = { kind: 'blocked', queueMs: 0, providerMs: 0 };
const other: Outcome = { kind: 'blocked', queueMs: 1, providerMs: 1 };
const passedOn = (attempt: number): Outcome => ({
  ...{ kind: 'failed', code: 'provider_error', retryable: true, queueMs: 0, providerMs: 0 },
  next: { provider: 'bedrock', model: 'm', attempt, fallback: [] },
});
const sink = { begin: () => undefined, write: () => true, drained: async () => undefined };
const always = Number.POSITIVE_INFINITY;

let chats: LiveChats;
let heard: string[];
// Time passes only where the test says so.
afterEach(() => void vi.useRealTimers());
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date', 'performance', 'setTimeout', 'clearTimeout'] });
  chats = new LiveChats();
  heard = [];
  const listener: Required<ChatListener> = {
    opened: ({ id }) => void heard.push(`${id} opened`),
    moved: ({ id, attempt }, from) =>
      void heard.push(`${id} moved from ${from.provider} to ${attempt.provider}`),
    lost: ({ id }) => void heard.push(`${id} lost`),
    detached: ({ id }) => void heard.push(`${id} detached`),
    ended: ({ id, leftWith }, outcome) => void heard.push(`${id} ended ${outcome?.kind ?? leftWith}`),
    joined: ({ requestId }, { id }) => void heard.push(`${requestId} joined ${id}`),
    refused: ({ requestId }, { code }) => void heard.push(`${requestId} refused ${code}`),
  };
  chats.listen(listener);
});
const ids = () => chats.all().map(({ id }) => id);

describe('an outcome', () => {
  it('settles all that wait for its chat → not those that have left, and no other chat', async () => {
    const [one, two] = [attach(chats, 'one'), attach(chats, 'two')];
    const [again, left] = [attach(chats, 'one'), attach(chats, 'one')];
    leave(chats, left);
    chats.onOutcome('one', blocked);
    chats.onOutcome('one', other);
    expect(await Promise.all([one.outcome, again.outcome])).toEqual([blocked, blocked]);
    expect(ids()).toEqual(['two']);
    chats.onOutcome('two', other);
    expect(await two.outcome).toBe(other);
    expect(heard).toEqual(['one opened', 'two opened', 'one ended blocked', 'two ended blocked']);
  });

  it('is of a chat that nothing waits for → ignored', () => {
    chats.onOutcome('one', blocked);
    chats.onMoved('one', { provider: 'bedrock', attempt: 2 });
    expect([chats.onLost('one', Date.now()), ids(), heard]).toEqual([false, [], []]);
  });

  it('names a next attempt → the chat moves, whichever message comes first', async () => {
    const request = attach(chats, 'one');
    chats.onOutcome('one', passedOn(3));
    chats.onOutcome('one', passedOn(2));
    expect(chats.find('one')?.job).toMatchObject({ jobId: 'one', provider: 'bedrock', attempt: 3 });
    expect(heard).toEqual(['one opened', 'one moved from openai to bedrock']);
    chats.onOutcome('one', blocked);
    expect(await request.outcome).toBe(blocked);
  });
});

describe('a request', () => {
  it.each([10, 0, -1000, Number.NEGATIVE_INFINITY])(
    'has its deadline in %d ms → it waits no longer',
    async (forMs) => {
      const request = attach(chats, 'one', { forMs });
      vi.advanceTimersByTime(10);
      expect(await request.outcome).toBeUndefined();
      leave(chats, request);
      expect([ids(), heard]).toEqual([[], ['one opened', 'one ended timeout']]);
    },
  );

  it('only reads a chat → it has no events, and does not keep it', () => {
    const deadline = Date.now() + 60_000;
    const claimed = { id: 'one', deadline, expiresAt: deadline, current: { provider: 'openai' } } as const;
    const link = { requestResend: () => undefined };
    const read = { signal: new AbortController().signal, waitUntil: deadline, link };
    const request = chats.attach(claimed, read);
    expect([ids(), chats.onLost('one', Date.now())]).toEqual([['one'], false]);
    chats.leave(request, 'cancelled', { goesOn: false });
    expect([ids(), heard]).toEqual([[], []]);
  });

  it('leaves a stored chat, as others do → it is followed in the background, once', async () => {
    const stored = { expiresAt: Date.now() + 60_000 };
    const requests = [1, 2].map(() => attach(chats, 'one', { chat: stored }));
    for (const request of requests) chats.leave(request, 'cancelled', { goesOn: true });
    expect(chats.find('one')?.requests.size).toBe(1);
    const again = attach(chats, 'one', { chat: stored });
    chats.onOutcome('one', blocked);
    expect(await again.outcome).toBe(blocked);
    expect(heard).toEqual(['one opened', 'one detached', 'one ended blocked']);
  });

  it('is in the background → it gives up at the deadline of the chat, or when its job was not added', () => {
    vi.useFakeTimers();
    for (const id of ['late', 'refused']) {
      const request = attach(chats, id, { chat: { expiresAt: Date.now() + 60_000 }, forMs: 50 });
      chats.leave(request, 'cancelled', { goesOn: true });
      if (id === 'refused') request.fail(new Error('away'));
    }
    vi.advanceTimersByTime(50);
    vi.useRealTimers();
    expect(heard.filter((event) => event.includes('ended'))).toEqual([
      'refused ended queue_unavailable',
      'late ended timeout',
    ]);
  });

  it('leaves a chat that is not stored → a second is left for what its worker makes of the end', () => {
    vi.useFakeTimers();
    const [cut, silent] = [attach(chats, 'cut'), attach(chats, 'silent')];
    for (const request of [cut, silent]) chats.leave(request, 'cancelled', { goesOn: true });
    chats.onOutcome('cut', blocked);
    vi.advanceTimersByTime(1000);
    vi.useRealTimers();
    expect(heard.slice(-2)).toEqual(['cut ended blocked', 'silent ended cancelled']);
  });
});

describe('due', () => {
  it('has chats in the background → each in one of fifteen polls, and any other one in each', () => {
    for (let n = 0; n < 152; n += 1) {
      const request = attach(chats, `${n}`, { chat: { expiresAt: Date.now() + 60_000 } });
      if (n >= 2) chats.leave(request, 'timeout', { goesOn: true });
    }
    attach(chats, '2');
    const polls = Array.from({ length: 15 }, (_, n) =>
      chats.due({ attachedBefore: always, slot: n + 30 }).map(({ id }) => id),
    );
    for (const polled of polls) expect(polled).toEqual(expect.arrayContaining(['0', '1', '2']));
    expect(polls.flat()).toHaveLength(3 * 15 + 149);
    expect(new Set(polls.flat()).size).toBe(152);
    for (const id of ids()) chats.onOutcome(id, blocked);
  });

  it('has chats that have only just come → they are left out', () => {
    const before = Date.now();
    const request = attach(chats, 'one');
    expect(chats.due({ attachedBefore: before, slot: 0 })).toEqual([]);
    expect(chats.due({ attachedBefore: Date.now() + 1, slot: 0 })).toHaveLength(1);
    leave(chats, request);
  });
});

describe('onLost', () => {
  it('→ the job is added again, if its record would still exist, had it ended since it was last seen', () => {
    const request = attach(chats, 'one');
    request.chat.added(Date.now());
    const seenAgoMs = (ms: number) => {
      request.chat.seen(Date.now() - ms, { isRunning: false });
      return chats.onLost('one', Date.now());
    };
    expect([seenAgoMs(50_000), seenAgoMs(49_000)]).toEqual([false, true]);
    // Until another request adds it.
    expect(chats.onLost('one', Date.now())).toBe(false);
    request.chat.added(Date.now());
    expect(chats.onLost('one', Date.now() - 1)).toBe(false);
    expect(chats.onLost('one', Date.now())).toBe(true);
    expect(heard).toEqual(['one opened', 'one lost', 'one lost']);
    leave(chats, request);
  });

  it('is of a job that was cancelled because its request has left → nothing', () => {
    const request = attach(chats, 'one');
    request.chat.added(Date.now());
    chats.leave(request, 'cancelled', { goesOn: true });
    expect([ids(), chats.onLost('one', Date.now())]).toEqual([['one'], false]);
    chats.onOutcome('one', blocked);
    expect(heard).not.toContain('one lost');
  });

  it('is of an attempt that was not seen yet → nothing', () => {
    const request = attach(chats, 'one');
    request.chat.added(Date.now());
    chats.onMoved('one', { provider: 'bedrock', attempt: 2 });
    expect(chats.onLost('one', Date.now())).toBe(false);
    leave(chats, request);
  });
});

describe('a reader', () => {
  const asked = vi.fn();
  const link = { requestResend: asked };
  const stored = { expiresAt: Date.now() + 60_000 };
  const stream = { sink, from: undefined };
  beforeEach(() => void asked.mockReset());
  const places = () => asked.mock.calls.map(([, place]: unknown[]) => place);

  it('has deltas that are for it → gets those', () => {
    const adder = attach(chats, 'one', { stream, link });
    const joined = attach(chats, 'one', { stream, link, joined: { state: 'queued' } });
    chats.onDelta({ jobId: 'one', callId: 'call', at: 0, text: 'Hel' });
    expect([adder.reader?.hasBegun, joined.reader?.hasBegun]).toEqual([true, false]);
    const { readerName = '' } = joined;
    chats.onDelta({ jobId: 'one', callId: 'call', at: 0, text: 'Hel', reader: readerName });
    expect(joined.reader?.hasBegun).toBe(true);
    for (const request of [adder, joined]) request[Symbol.dispose]();
    chats.onOutcome('one', blocked);
  });

  it('has joined → asks the worker for nothing until one runs the job', () => {
    using waiting = attach(chats, 'one', { chat: stored, stream, link, joined: { state: 'queued' } });
    waiting.chat.seen(Date.now(), { isRunning: false });
    expect(places()).toEqual([]);
    waiting.chat.seen(Date.now(), { isRunning: true });
    expect(places()).toEqual([{ reader: waiting.readerName, from: 0, max: expect.any(Number) }]);
    asked.mockReset();
    using running = attach(chats, 'two', { chat: stored, stream, link, joined: { state: 'running' } });
    expect(places()).toHaveLength(1);
    for (const request of [waiting, running]) leave(chats, request);
  });
});
