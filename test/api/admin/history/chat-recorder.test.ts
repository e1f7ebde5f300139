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

describe('ChatRecorder', () => {
  it('records when a chat came, was queued, begun, answered and ended, and none of its texts', () => {
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

  it('records all attempts, with the times and tokens of all of them', () => {
    const usage = { inputTokens: 5, outputTokens: 1 };
    const first = {
      provider: 'openai',
      code: 'provider_error',
      usage,
      queueMs: 100,
      providerMs: 700,
    } as const;
    const last = {
      provider: 'bedrock',
      model: 'b',
      code: 'ok',
      usage,
      queueMs: 200,
      providerMs: 1300,
    } as const;
    watch({ ...ok, firstTokenMs: 400, usage, attempts: [first, last] });
    expect(ended[0]).toMatchObject({
      ...{ provider: 'openai', startedMs: 250, firstTokenMs: 1550, inputTokens: 10, outputTokens: 2 },
      attempts: [
        { provider: 'openai', code: 'provider_error' },
        { provider: 'bedrock', model: 'b', code: 'ok' },
      ],
    });
  });

  it.each<[string, Outcome | undefined, string, string]>([
    ['cut', { ...ok, kind: 'truncated' }, 'truncated', 'ok'],
    ['withheld', { kind: 'blocked', ...times }, 'blocked', 'content_blocked'],
    ['cancelled', { kind: 'cancelled', ...times }, 'cancelled', 'cancelled'],
    [
      'failed',
      { kind: 'failed', code: 'provider_error', retryable: true, ...times },
      'provider_error',
      'provider_error',
    ],
    ['too late', undefined, 'timeout', 'timeout'],
  ])('records one that was %s', (_, outcome, code, attempt) => {
    watch(outcome);
    expect(ended).toMatchObject([{ code, attempts: [{ code: attempt }] }]);
  });

  it('records what the provider answered with', () => {
    const providerError = { status: 400, type: 'invalid_request_error' };
    watch({ kind: 'failed', code: 'provider_rejected', retryable: false, providerError, ...times });
    const attempts = [{ provider: 'openai', model: 'gpt', code: 'provider_rejected', providerError }];
    expect(ended).toMatchObject([{ code: 'provider_rejected', attempts }]);
  });

  it('names the attempts before the first one of a chat without an outcome', () => {
    const earlier = [{ provider: 'bedrock', code: 'overloaded', retryable: true, queueMs: 0 }] as const;
    watch(undefined, { current: { earlier: [...earlier] } });
    const attempts = [
      { provider: 'bedrock', code: 'overloaded' },
      { provider: 'openai', model: 'gpt', code: 'timeout' },
    ];
    expect(ended).toMatchObject([{ code: 'timeout', attempts }]);
  });

  it.each(['cancelled', 'timeout'] as const)(
    "records the worker's times of a call that is cut, and when its request ended (%s)",
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

  it('waits a second for what the worker of such a call reports', () => {
    const one = request();
    vi.advanceTimersByTime(2000);
    leave(one, 'cancelled');
    vi.advanceTimersByTime(999);
    expect(ended).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(ended).toMatchObject([{ code: 'cancelled', queuedMs: 100, endedMs: 2100 }]);
    expect(ended[0]).not.toHaveProperty('startedMs');
  });

  it('records no time that is before another or after the end, whatever other clocks say', () => {
    watch({ ...ok, queueMs: 1e9, providerMs: 1, firstTokenMs: -5 });
    expect(ended[0]).toMatchObject({ queuedMs: 150, startedMs: 3150, firstTokenMs: 3150, endedMs: 3150 });
    watch({ ...ok, queueMs: -5, providerMs: -5 });
    expect(ended[1]).toMatchObject({ queuedMs: 150, startedMs: 150, queueMs: 0, providerMs: 0 });
  });

  it('records what was refused before it was queued', () => {
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
  ])('records the end of a chat that goes on without its request, once, %s', (_, code, finish) => {
    const one = request({ isStored: true });
    vi.advanceTimersByTime(1000);
    leave(one, 'cancelled');
    vi.advanceTimersByTime(1000);
    expect(ended).toEqual([]);
    finish(one);
    expect(ended).toMatchObject([{ code, endedMs: Date.now() - 1_000_000 + 100 }]);
    expect(arrivals).toHaveLength(1);
  });

  it('records what several requests join as one chat, with the times of the first', () => {
    request({ isStored: true });
    vi.advanceTimersByTime(1000);
    request({ isStored: true, requestId: 'second', elapsedMs: 0 });
    expect(arrivals).toHaveLength(1);
    vi.advanceTimersByTime(1000);
    settle(ok);
    expect(ended).toMatchObject([{ id: 'id', code: 'ok', queuedMs: 100, startedMs: 400, endedMs: 2100 }]);
    expect(arrivals).toHaveLength(1);
  });

  it.each([
    ['the one that joined', 'the first'],
    ['the first', 'the one that joined'],
  ])('records the end once when %s waits in the background and %s leaves after it', (background) => {
    const requests = [request({ isStored: true }), request({ isStored: true, requestId: 'second' })];
    for (const one of background === 'the first' ? requests : requests.toReversed()) leave(one);
    expect([arrivals.length, ended.length]).toEqual([1, 0]);
    settle(ok);
    expect(ended.map(({ code }) => code)).toEqual(['ok']);
    expect(arrivals).toHaveLength(1);
  });

  it('does not take for the end of a chat what only one of its requests fails with', () => {
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

  it('records as one more what a request finds under way that another one has seen the end of', () => {
    request({ isStored: true });
    settle(ok);
    fail(request({ isStored: true, requestId: 'late' }));
    expect([arrivals.length, ended.length]).toEqual([2, 2]);
  });

  it('records neither arrival nor end of a chat that is only read here', () => {
    const { signal } = command();
    const deadline = Date.now() + forMs;
    const claimed = { id: 'id', deadline, expiresAt: deadline, current: { provider: 'openai' } } as const;
    const options = { signal, waitUntil: deadline, jobClient: { requestResend: () => undefined } };
    fail(chats.attach(claimed, options));
    chats.attach(claimed, options);
    settle(ok);
    expect([arrivals, ended]).toEqual([[], []]);
  });

  it('records no long names', () => {
    watch({ ...ok, model: 'x'.repeat(10_000) });
    expect(ended[0]?.model).toHaveLength(200);
  });
});
