import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ChatRecorder } from '../../../../api/admin/history/chat-recorder.js';
import type { AttachedRequest } from '../../../../api/chat/attached-request.js';
import type { ChatCommand, StoreOptions, StreamOptions } from '../../../../api/chat/chat-command.js';
import { LiveChats } from '../../../../api/chat/live-chats.js';
import type { RecentRequest, RequestCode } from '../../../../shared/contracts/history.js';
import type { Attempt } from '../../../../shared/protocol/attempts.js';
import type { Outcome } from '../../../../shared/protocol/outcome.js';
import { command as commandOf, writeContent } from '../../../support/attached.js';
import { promptCanary as canary } from '../../../support/canaries.js';
import { countOwnTimers } from '../../../support/own-timers.js';

let chats: LiveChats;
let ended: RecentRequest[];
let arrivals: string[];
/** Codes of the chats whose callers waited for their end. */
let awaited: string[];
const history = {
  recordArrival: (provider: string) => void arrivals.push(provider),
  recordEnd: (request: RecentRequest) => void ended.push(request),
};
const command = (own: Partial<ChatCommand> = {}): ChatCommand =>
  commandOf({
    ...{ requestId: 'id', user: 'user id', userName: 'anna', provider: 'openai', model: 'gpt' },
    written: writeContent({ turns: [{ role: 'user', content: canary }] }),
    ...{ elapsedMs: 100, ...own },
  });
const times = { queueMs: 300, providerMs: 2000 };
const ok: Outcome = { kind: 'ok', text: canary, model: 'gpt-4', ...times };
/** Until the deadline of a chat. */
const forMs = 60_000;

let ownTimers: () => number;
beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000, toFake: ['Date', 'performance', 'setTimeout', 'clearTimeout'] });
  ownTimers = countOwnTimers('api/chat');
  [ended, arrivals, awaited] = [[], [], []];
  chats = new LiveChats();
  chats.listen(new ChatRecorder(history, { record: ({ code }) => void awaited.push(code) }));
});
afterEach(() => {
  expect([chats.all(), ownTimers()]).toEqual([[], 0]);
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
    { signal, waitUntil: deadline, link: { requestResend: () => undefined } },
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

  type Step = (requests: AttachedRequest[]) => unknown;
  const comes =
    (own?: Asked): Step =>
    (requests) =>
      requests.push(request(own));
  const ms =
    (time: number): Step =>
    () =>
      vi.advanceTimersByTime(time);
  /** A step of one of the requests. */
  const withOne =
    (work: (one: AttachedRequest) => void, place = 0): Step =>
    (requests) =>
      work(requests[place] ?? expect.unreachable());
  const leaves = (place: number, code?: RequestCode) => withOne((one) => leave(one, code), place);
  const fails = (place: number) => withOne((one) => fail(one, 'queue_unavailable'), place);
  const isNotAdded = (place: number) => withOne((one) => one.fail(new Error('not added')), place);
  const ends: Step = () => settle(ok);
  const isCut: Step = () => settle({ kind: 'cancelled', queueMs: 300, providerMs: 1700, firstTokenMs: 500 });
  const isOpen: Step = () => expect(ended).toEqual([]);
  const isUnknown: Step = () => expect(ended[0]).not.toHaveProperty('startedMs');
  const first = comes({ isStored: true });
  const another = comes({ isStored: true, requestId: 'another', elapsedMs: 0 });
  const goesOn = [first, ms(1000), leaves(0, 'cancelled'), ms(1000), isOpen];
  const cut = { queuedMs: 100, startedMs: 400, firstTokenMs: 900, endedMs: 2100, providerMs: 1700 };
  const whole = { id: 'id', code: 'ok', queuedMs: 100, startedMs: 400, endedMs: 2100 };

  it.each<[string, Step[], recorded: object[], arrived?: number]>([
    // The worker's times of the call, and when its request ended.
    ['is left', [comes(), ms(2000), leaves(0, 'cancelled'), isOpen, isCut], [{ code: 'cancelled', ...cut }]],
    ['is late', [comes(), ms(2000), leaves(0), ms(200), isOpen, isCut], [{ code: 'timeout', ...cut }]],
    [
      'is left, and of whose worker nothing is heard for a second',
      [comes(), ms(2000), leaves(0), ms(999), isOpen, ms(1), isUnknown],
      [{ code: 'timeout', queuedMs: 100, endedMs: 2100 }],
    ],
    ['goes on alone, and ends', [...goesOn, ends], [{ code: 'ok', endedMs: 2100 }]],
    ['goes on until its deadline', [...goesOn, ms(58_000)], [{ code: 'timeout', endedMs: 60_100 }]],
    ['goes on, not added', [...goesOn, isNotAdded(0)], [{ code: 'queue_unavailable', endedMs: 2100 }]],
    ['is joined by another request', [first, ms(1000), another, ms(1000), ends], [whole]],
    ['is left by all that joined it', [first, another, leaves(0), leaves(1), isOpen, ends], [{ id: 'id' }]],
    ['is left by the first one last', [first, another, leaves(1), leaves(0), isOpen, ends], [{ id: 'id' }]],
    [
      'is joined by requests that fail alone',
      [first, another, fails(1), another, leaves(2), isNotAdded(2), isOpen, ends],
      [{ id: 'id', code: 'ok' }],
    ],
    [
      'has ended before others come, which fail',
      [first, ends, first, first, fails(1), fails(2)],
      [{ code: 'ok' }, { code: 'queue_unavailable' }],
      2,
    ],
  ])('%s -> is recorded once', (_, steps, recorded, arrived = 1) => {
    const requests: AttachedRequest[] = [];
    for (const step of steps) step(requests);
    expect(ended).toMatchObject(recorded);
    expect(arrivals).toHaveLength(arrived);
  });

  const asynchronous = comes({ isStored: true, storeOptions: { isAsync: true } as StoreOptions });
  const rejected: Step = () => settle({ ...failed, code: 'provider_rejected', retryable: false });
  it.each<[string, Step[], counted: string[]]>([
    ['ends', [comes(), ends], ['ok']],
    ['fails', [comes(), rejected], ['provider_rejected']],
    ['is late', [comes(), ms(2000), leaves(0), isCut], ['timeout']],
    ['is late, and of whose worker nothing is heard', [comes(), leaves(0), ms(1000)], ['timeout']],
    ['is left', [comes(), ms(2000), leaves(0, 'cancelled'), isCut], []],
    ['is stored and ends', [first, ends], ['ok']],
    ['is stored and late', [first, ms(59_999), leaves(0), ms(1)], ['timeout']],
    ['is stored and ends after its caller has left', [...goesOn, ends], []],
    ['is stored, and late after its caller has left', [first, leaves(0, 'cancelled'), ms(60_000)], []],
    ['is stored, and ends after its caller has waited', [first, leaves(0), ms(1000), ends], []],
    ['is stored, and nobody waits for it', [asynchronous, leaves(0), ms(1000), ends], []],
    ['is stored, and late without anyone who waits', [asynchronous, leaves(0), ms(60_000)], []],
    ['cannot be added', [comes(), fails(0)], ['queue_unavailable']],
  ])('%s -> counts where its caller waited until then', (_, steps, counted) => {
    const requests: AttachedRequest[] = [];
    for (const step of steps) step(requests);
    expect(awaited).toEqual(counted);
  });

  it('was refused -> counts unless its caller has left', () => {
    for (const code of ['overloaded', 'cancelled', 'timeout'] as const)
      chats.refuse(command(), { code, receivedAt: performance.now() });
    expect(awaited).toEqual(['overloaded', 'timeout']);
  });

  it('is only read here -> neither its arrival nor its end is recorded', () => {
    const { signal } = command();
    const deadline = Date.now() + forMs;
    const claimed = { id: 'id', deadline, expiresAt: deadline, current: { provider: 'openai' } } as const;
    const options = { signal, waitUntil: deadline, link: { requestResend: () => undefined } };
    fail(chats.attach(claimed, options));
    chats.attach(claimed, options);
    settle(ok);
    expect([arrivals, ended]).toEqual([[], []]);
  });
});
