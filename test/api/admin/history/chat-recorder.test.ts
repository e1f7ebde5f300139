import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ChatRecorder } from '../../../../api/admin/history/chat-recorder.js';
import type { AttachedRequest } from '../../../../api/chat/attached-request.js';
import type { ChatCommand, StreamOptions } from '../../../../api/chat/chat-command.js';
import { LiveChats } from '../../../../api/chat/live-chats.js';
import type { RecentRequest, RequestCode } from '../../../../shared/history.js';
import type { Attempt } from '../../../../shared/protocol/attempts.js';
import type { Outcome } from '../../../../shared/protocol/outcome.js';
import { command as commandOf } from '../../../support/attached.js';
import { promptCanary as canary } from '../../../support/canaries.js';

let chats: LiveChats;
let ended: RecentRequest[];
let arrivals: string[];
const history = {
  recordArrival: (provider: string) => void arrivals.push(provider),
  recordEnd: (request: RecentRequest) => void ended.push(request),
};
const command = (own: Partial<ChatCommand> = {}): ChatCommand =>
  commandOf({
    ...{ requestId: 'id', user: 'user id', userName: 'anna', provider: 'openai', model: 'gpt' },
    turns: [{ role: 'user', content: canary }],
    ...{ elapsedMs: 100, ...own },
  });
const times = { queueMs: 300, providerMs: 2000 };
const ok: Outcome = { kind: 'ok', text: canary, model: 'gpt-4', ...times };
/** Until the deadline of a chat. */
const forMs = 60_000;

beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000, toFake: ['Date', 'performance', 'setTimeout', 'clearTimeout'] });
  [ended, arrivals] = [[], []];
  chats = new LiveChats();
  chats.listen(new ChatRecorder(history));
});
afterEach(() => {
  expect([chats.all(), vi.getTimerCount()]).toEqual([[], 0]);
  vi.useRealTimers();
});

interface Asked extends Partial<ChatCommand> {
  isStored?: boolean;
  current?: Partial<Attempt>;
}

/** Attaches a request to the chat `id`. */
function request({ isStored = false, current, ...own }: Asked = {}): AttachedRequest {
  const asked = command(own);
  const { signal, provider, model, elapsedMs = 0 } = asked;
  const deadline = Date.now() + forMs;
  return chats.attach(
    {
      ...{ id: 'id', deadline, current: { provider, ...(model && { model }), ...current } },
      ...(isStored && { expiresAt: deadline + forMs }),
    },
    { signal, waitUntil: deadline, jobClient: { requestResend: () => undefined } },
    { command: asked, level: 0, startBy: deadline, receivedAt: performance.now() - elapsedMs },
  );
}
const settle = (outcome: Outcome) => chats.onOutcome('id', outcome);
/** It fails, and its chat does not go on for it. */
const fail = (one: AttachedRequest, code: RequestCode = 'timeout') =>
  chats.leave(one, code, { goesOn: false });
/** Its caller leaves, or does not wait; the chat goes on. */
const leave = (one: AttachedRequest, code: RequestCode = 'timeout') =>
  chats.leave(one, code, { goesOn: true });

/** Queued 150 ms after its request came, and over three seconds later, without an outcome of a worker. */
function watch(outcome: Outcome | undefined, own: Asked = {}): void {
  const one = request({ ...own, elapsedMs: 150 });
  vi.advanceTimersByTime(3000);
  if (outcome) settle(outcome);
  else leave(one);
  vi.advanceTimersByTime(1000);
}

describe('a chat that', () => {
  it('has ended -> when it came, was queued, begun, answered and ended, and none of its texts', () => {
    const usage = { inputTokens: 3, outputTokens: 4 };
    const stream = {} as StreamOptions;
    watch({ ...ok, usage, firstTokenMs: 500 }, { stream });
    expect(arrivals).toEqual(['openai']);
    expect(ended).toEqual([
      {
        ...{ id: 'id', user: 'anna', provider: 'openai', model: 'gpt-4', streamed: true, code: 'ok' },
        ...{ receivedAt: new Date(999_850).toISOString(), ...times },
        ...{ queuedMs: 150, startedMs: 450, firstTokenMs: 950, endedMs: 3150 },
        attempts: [{ provider: 'openai', model: 'gpt', code: 'ok' }],
        ...{ inputTokens: 3, outputTokens: 4 },
      },
    ]);
    expect(JSON.stringify(ended)).not.toContain(canary);
  });

  it('has several attempts -> all are recorded, with the times and tokens of all of them', () => {
    const usage = { inputTokens: 5, outputTokens: 1 };
    const failed = { provider: 'openai', code: 'provider_error' } as const;
    const answered = { provider: 'bedrock', model: 'b', code: 'ok' } as const;
    const attempts = [
      { ...failed, usage, queueMs: 100, providerMs: 700 },
      { ...answered, usage, queueMs: 200, providerMs: 1300 },
    ];
    watch({ ...ok, firstTokenMs: 400, usage, attempts });
    expect(ended[0]).toMatchObject({
      ...{ provider: 'openai', startedMs: 250, firstTokenMs: 1550, inputTokens: 10, outputTokens: 2 },
      attempts: [failed, answered],
    });
  });

  const providerError = { status: 400, type: 'invalid_request_error' };
  const failed = { kind: 'failed', ...times } as const;
  const passedOver = [{ provider: 'bedrock', code: 'overloaded', retryable: true, queueMs: 0 } as const];
  it.each<[string, Outcome | undefined, recorded: object, own?: Asked]>([
    ['cut', { ...ok, kind: 'truncated' }, { code: 'truncated', attempts: [{ code: 'ok' }] }],
    ['withheld', { kind: 'blocked', ...times }, { code: 'blocked', attempts: [{ code: 'content_blocked' }] }],
    ['cancelled', { kind: 'cancelled', ...times }, { code: 'cancelled', attempts: [{ code: 'cancelled' }] }],
    [
      'failed',
      { ...failed, code: 'provider_error', retryable: true },
      { code: 'provider_error', attempts: [{ code: 'provider_error' }] },
    ],
    [
      'refused by the provider',
      { ...failed, code: 'provider_rejected', retryable: false, providerError },
      {
        code: 'provider_rejected',
        attempts: [{ provider: 'openai', model: 'gpt', code: 'provider_rejected', providerError }],
      },
    ],
    ['too late', undefined, { code: 'timeout', attempts: [{ code: 'timeout' }] }],
    [
      'too late after another attempt',
      undefined,
      {
        code: 'timeout',
        attempts: [
          { provider: 'bedrock', code: 'overloaded' },
          { provider: 'openai', model: 'gpt', code: 'timeout' },
        ],
      },
      { current: { earlier: passedOver } },
    ],
    ['by a model with a long name', { ...ok, model: 'x'.repeat(10_000) }, { model: 'x'.repeat(200) }],
  ])('was %s -> that is recorded', (_, outcome, recorded, own) => {
    watch(outcome, own);
    expect(ended).toMatchObject([recorded]);
  });

  it.each(['cancelled', 'timeout'] as const)(
    "is cut -> the worker's times of the call, and when its request ended (%s)",
    (code) => {
      const one = request();
      vi.advanceTimersByTime(2000);
      leave(one, code);
      expect(ended).toEqual([]);
      vi.advanceTimersByTime(200);
      settle({ kind: 'cancelled', queueMs: 300, providerMs: 1700, firstTokenMs: 500 });
      expect(ended).toMatchObject([
        { code, queuedMs: 100, startedMs: 400, firstTokenMs: 900, endedMs: 2100, providerMs: 1700 },
      ]);
    },
  );

  it('is cut, and whose worker says nothing -> recorded after a second', () => {
    const one = request();
    vi.advanceTimersByTime(2000);
    leave(one, 'cancelled');
    vi.advanceTimersByTime(999);
    expect(ended).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(ended).toMatchObject([{ code: 'cancelled', queuedMs: 100, endedMs: 2100 }]);
    expect(ended[0]).not.toHaveProperty('startedMs');
  });

  it('has odd times by other clocks -> none before another or after the end', () => {
    watch({ ...ok, queueMs: 1e9, providerMs: 1, firstTokenMs: -5 });
    expect(ended[0]).toMatchObject({ queuedMs: 150, startedMs: 3150, firstTokenMs: 3150, endedMs: 3150 });
    watch({ ...ok, queueMs: -5, providerMs: -5 });
    expect(ended[1]).toMatchObject({ queuedMs: 150, startedMs: 150, queueMs: 0, providerMs: 0 });
  });

  it('was refused before it was queued -> recorded as that', () => {
    const receivedAt = performance.now() - 100;
    for (const code of ['overloaded', 'cancelled', 'internal'] as const)
      chats.refuse(command(), { code, receivedAt });
    expect(ended.map(({ code }) => code)).toEqual(['overloaded', 'cancelled', 'internal']);
    expect(ended[0]).toMatchObject({ id: 'id', attempts: [], endedMs: 100 });
    expect(ended[0]).not.toHaveProperty('queuedMs');
    expect(arrivals).toEqual(['openai', 'openai', 'openai']);
  });

  it.each<[string, RequestCode, (one: AttachedRequest) => void]>([
    ['as it ends', 'ok', () => settle(ok)],
    ['at its deadline', 'timeout', () => vi.advanceTimersByTime(forMs - 2000)],
    ['when the queue did not take it', 'queue_unavailable', (one) => one.fail(new Error('not added'))],
  ])('goes on without its request -> its end is recorded once, %s', (_, code, finish) => {
    const one = request({ isStored: true });
    vi.advanceTimersByTime(1000);
    leave(one, 'cancelled');
    vi.advanceTimersByTime(1000);
    expect(ended).toEqual([]);
    finish(one);
    expect(ended).toMatchObject([{ code, endedMs: Date.now() - 1_000_000 + 100 }]);
    expect(arrivals).toHaveLength(1);
  });

  it('is joined by another request -> one chat, with the times of the first', () => {
    request({ isStored: true });
    vi.advanceTimersByTime(1000);
    request({ isStored: true, requestId: 'second', elapsedMs: 0 });
    vi.advanceTimersByTime(1000);
    settle(ok);
    expect(ended).toMatchObject([{ id: 'id', code: 'ok', queuedMs: 100, startedMs: 400, endedMs: 2100 }]);
    expect(arrivals).toHaveLength(1);
  });

  it.each([false, true])(
    'is left by all that joined it -> one end (the first one last: %s)',
    (isFirstLast) => {
      const requests = [request({ isStored: true }), request({ isStored: true, requestId: 'second' })];
      for (const one of isFirstLast ? requests.toReversed() : requests) leave(one);
      expect([arrivals.length, ended.length]).toEqual([1, 0]);
      settle(ok);
      expect(ended.map(({ code }) => code)).toEqual(['ok']);
      expect(arrivals).toHaveLength(1);
    },
  );

  it('is joined by a request that fails alone -> that is no end of it', () => {
    const isStored = true;
    request({ isStored });
    fail(request({ isStored, requestId: '2' }), 'queue_unavailable');
    const third = request({ isStored, requestId: '3' });
    leave(third);
    third.fail(new Error('not added'));
    expect(ended).toEqual([]);
    settle(ok);
    expect(ended).toMatchObject([{ id: 'id', code: 'ok' }]);
    for (const one of [request({ isStored }), request({ isStored })]) fail(one, 'queue_unavailable');
    expect(ended.map(({ code }) => code)).toEqual(['ok', 'queue_unavailable']);
    expect(arrivals).toHaveLength(2);
  });

  it('is found by a request after another one has seen its end -> is one more', () => {
    request({ isStored: true });
    settle(ok);
    fail(request({ isStored: true, requestId: 'late' }));
    expect([arrivals.length, ended.length]).toEqual([2, 2]);
  });

  it('is only read here -> neither its arrival nor its end is recorded', () => {
    const { signal } = command();
    const deadline = Date.now() + forMs;
    const claimed = { id: 'id', deadline, expiresAt: deadline, current: { provider: 'openai' } } as const;
    const options = { signal, waitUntil: deadline, jobClient: { requestResend: () => undefined } };
    fail(chats.attach(claimed, options));
    chats.attach(claimed, options);
    settle(ok);
    expect([arrivals, ended]).toEqual([[], []]);
  });
});
