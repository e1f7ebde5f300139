import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ChatCommand, ResolvedChat } from '../../../api/chat/chat-command.js';
import { type ChatEnding, ChatEndings } from '../../../api/chat/chat-history.js';
import { Failure } from '../../../shared/failures.js';
import type { RecentRequest } from '../../../shared/history.js';
import type { Outcome } from '../../../shared/protocol/outcome.js';
import { promptCanary as canary } from '../../support/canaries.js';

let endings: ChatEndings;
let ended: RecentRequest[];
let arrivals: string[];
const history = {
  recordArrival: (provider: string) => void arrivals.push(provider),
  recordEnd: (request: RecentRequest) => void ended.push(request),
};
const left = new AbortController();
left.abort();
const command = (own: Partial<ChatCommand> = {}): ChatCommand => ({
  ...{ requestId: 'id', user: 'user id', userName: 'anna', provider: 'openai', model: 'gpt' },
  turns: [{ role: 'user', content: canary }],
  ...{ elapsedMs: 100, signal: new AbortController().signal, ...own },
});
const chat: ResolvedChat['chat'] = { id: 'id', deadline: 0, current: { provider: 'openai', model: 'gpt' } };
const times = { queueMs: 300, providerMs: 2000 };
const ok: Outcome = { kind: 'ok', text: canary, model: 'gpt-4', ...times };

beforeEach(() => {
  ended = [];
  arrivals = [];
  endings = new ChatEndings(history);
  vi.useFakeTimers({ now: 1_000_000, toFake: ['Date', 'performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** Queued 150 ms after its request came, and over after three seconds more. */
const watch = (outcome: Outcome | undefined, own: Partial<ChatCommand> = {}, onAnswer = (_: number) => {}) =>
  endings.watch(command(own), async (ending) => {
    vi.advanceTimersByTime(50);
    ending.recordQueued(chat, onAnswer);
    vi.advanceTimersByTime(3000);
    if (outcome) ending.settle(outcome);
    else await ending.follow(Promise.resolve(undefined));
  });

/** A request whose chat is under way: the test says what becomes of it. */
function request(own: Partial<ChatCommand> = {}) {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let ending: ChatEnding | undefined;
  const watched = endings
    .watch(command(own), (its) => {
      ending = its;
      its.recordQueued(chat);
      return promise;
    })
    .catch(() => undefined);
  return {
    settle: async (outcome: Outcome) => {
      ending?.settle(outcome);
      resolve();
      await watched;
    },
    fail: async (error: unknown) => {
      reject(error);
      await watched;
    },
    /** Its caller leaves, or does not wait; the chat goes on. */
    leave: async (wait: Promise<Outcome | 'joined' | undefined>) => {
      void ending?.follow(wait);
      reject(new Failure('timeout'));
      await watched;
    },
  };
}

describe('ChatEndings', () => {
  it.each<[Outcome | undefined, number[]]>([
    [{ ...ok, text: 'Grüße' }, [7]],
    [{ kind: 'failed', code: 'internal', retryable: true, ...times }, [0]],
    [undefined, []],
  ])('says how many bytes the answer of %o has, once it is known (finding S6)', async (outcome, bytes) => {
    const answers: number[] = [];
    await watch(outcome, {}, (size) => void answers.push(size));
    expect(answers).toEqual(bytes);
  });

  it('records when a chat came, was queued, begun, answered and ended, and none of its texts', async () => {
    const usage = { inputTokens: 3, outputTokens: 4 };
    const sink = {} as NonNullable<ChatCommand['stream']>;
    await watch({ ...ok, usage, firstTokenMs: 500 }, { stream: sink });
    expect(arrivals).toEqual(['openai']);
    expect(ended).toEqual([
      {
        ...{ id: 'id', user: 'anna', provider: 'openai', model: 'gpt-4', streamed: true, code: 'ok' },
        ...{ receivedAt: new Date(999_900).toISOString(), ...times },
        ...{ queuedMs: 150, startedMs: 450, firstTokenMs: 950, endedMs: 3150 },
        attempts: [{ provider: 'openai', model: 'gpt', code: 'ok' }],
        ...{ inputTokens: 3, outputTokens: 4 },
      },
    ]);
    expect(JSON.stringify(ended)).not.toContain(canary);
  });

  it('records all attempts, with the times and tokens of all of them', async () => {
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
    await watch({ ...ok, firstTokenMs: 400, usage, attempts: [first, last] });
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
  ])('records one that was %s', async (_, outcome, code, attempt) => {
    await watch(outcome);
    expect(ended).toMatchObject([{ code, attempts: [{ code: attempt }] }]);
  });

  it('records what the provider answered with', async () => {
    const providerError = { status: 400, type: 'invalid_request_error' };
    await watch({ kind: 'failed', code: 'provider_rejected', retryable: false, providerError, ...times });
    const attempts = [{ provider: 'openai', model: 'gpt', code: 'provider_rejected', providerError }];
    expect(ended).toMatchObject([{ code: 'provider_rejected', attempts }]);
  });

  it.each([
    [left.signal, 'cancelled'],
    [new AbortController().signal, 'timeout'],
  ])("records the worker's times of a call that is cut, and when its request ended", async (signal, code) => {
    const { promise, resolve } = Promise.withResolvers<Outcome>();
    const cut = endings.watch(command({ signal }), async (ending) => {
      ending.recordQueued(chat);
      vi.advanceTimersByTime(2000);
      ending.awaitCut(promise);
      throw new Failure('timeout');
    });
    await expect(cut).rejects.toThrow('timeout');
    expect(ended).toEqual([]);
    vi.advanceTimersByTime(200);
    resolve({ kind: 'cancelled', queueMs: 300, providerMs: 1700, firstTokenMs: 500 });
    await vi.waitFor(() => expect(ended).toHaveLength(1));
    expect(ended).toMatchObject([
      { code, queuedMs: 100, startedMs: 400, firstTokenMs: 900, endedMs: 2100, providerMs: 1700 },
    ]);
  });

  it('records no time that is before another or after the end, whatever other clocks say', async () => {
    await watch({ ...ok, queueMs: 1e9, providerMs: 1, firstTokenMs: -5 });
    expect(ended[0]).toMatchObject({ queuedMs: 150, startedMs: 3150, firstTokenMs: 3150, endedMs: 3150 });
    await watch({ ...ok, queueMs: -5, providerMs: -5 });
    expect(ended[1]).toMatchObject({ queuedMs: 150, startedMs: 150, queueMs: 0, providerMs: 0 });
  });

  it('records what was refused before it was queued, and a caller who left as cancelled', async () => {
    const refuse = (own: Partial<ChatCommand>, error: unknown) =>
      endings.watch(command(own), () => Promise.reject(error)).catch(() => undefined);
    await refuse({}, new Failure('overloaded'));
    await refuse({ signal: left.signal }, new Failure('timeout'));
    await refuse({}, new TypeError('x'));
    expect(ended.map(({ code }) => code)).toEqual(['overloaded', 'cancelled', 'internal']);
    expect(ended[0]).toMatchObject({ attempts: [], endedMs: 100 });
    expect(ended[0]).not.toHaveProperty('queuedMs');
    expect(arrivals).toHaveLength(3);
  });

  it.each<[string, () => Promise<Outcome | undefined>, string]>([
    ['as it ends', async () => ok, 'ok'],
    ['at its deadline', async () => undefined, 'timeout'],
    ['when the queue did not take it', () => Promise.reject(new Error('not added')), 'queue_unavailable'],
  ])('records the end of a chat that goes on without its request, once, %s', async (_, wait, code) => {
    await request().leave(wait());
    await vi.waitFor(() => expect(ended.map((each) => each.code)).toEqual([code]));
    expect(arrivals).toHaveLength(1);
  });

  it('records what several requests join as one chat, with the times of the first', async () => {
    const first = request();
    vi.advanceTimersByTime(1000);
    const second = request({ requestId: 'second', elapsedMs: 0 });
    expect(arrivals).toHaveLength(1);
    vi.advanceTimersByTime(1000);
    await second.settle(ok);
    await first.settle(ok);
    expect(ended).toMatchObject([{ id: 'id', code: 'ok', queuedMs: 100, startedMs: 400, endedMs: 2100 }]);
    expect(arrivals).toHaveLength(1);
  });

  it.each([
    ['the one that joined', 'the first'],
    ['the first', 'the one that joined'],
  ])('records the end once when %s waits in the background and %s leaves after it', async (background) => {
    const requests = [request(), request({ requestId: 'second' })];
    const [waiting, leaving] = background === 'the first' ? requests : requests.toReversed();
    const { promise, resolve } = Promise.withResolvers<Outcome>();
    await waiting?.leave(promise);
    await leaving?.leave(Promise.resolve('joined'));
    expect([arrivals.length, ended.length]).toEqual([1, 0]);
    resolve(ok);
    await vi.waitFor(() => expect(ended.map(({ code }) => code)).toEqual(['ok']));
    expect(arrivals).toHaveLength(1);
  });

  it('does not take for the end of a chat what only one of its requests fails with', async () => {
    const [first, second, third] = [request(), request({ requestId: '2' }), request({ requestId: '3' })];
    await second.fail(new Failure('queue_unavailable'));
    await third.leave(Promise.resolve(undefined));
    expect(ended).toEqual([]);
    await first.settle(ok);
    expect(ended).toMatchObject([{ id: 'id', code: 'ok' }]);
    await Promise.all([request(), request()].map((one) => one.fail(new Failure('queue_unavailable'))));
    expect(ended.map(({ code }) => code)).toEqual(['ok', 'queue_unavailable']);
    expect(arrivals).toHaveLength(2);
  });

  it('records as one more what a request finds under way that another one has seen the end of', async () => {
    const first = request();
    await first.settle(ok);
    await request({ requestId: 'late' }).leave(Promise.resolve('joined'));
    expect([arrivals.length, ended.length]).toEqual([2, 2]);
  });

  it('records neither arrival nor end of what had ended before its request, whatever becomes of that', async () => {
    await endings.watch(command(), async (ending) => ending.forget());
    const replay = endings.watch(command({ signal: left.signal }), async (ending) => {
      ending.forget();
      throw new Failure('timeout');
    });
    await expect(replay).rejects.toThrow();
    expect([arrivals, ended]).toEqual([[], []]);
  });

  it('records no long names', async () => {
    await watch({ ...ok, model: 'x'.repeat(10_000) });
    expect(ended[0]?.model).toHaveLength(200);
  });

  it('costs a few microseconds', async () => {
    vi.useRealTimers();
    const one = async () => {
      const startedAt = performance.now();
      const unread = new ChatEndings({ recordArrival: () => {}, recordEnd: () => {} });
      for (let n = 0; n < 1000; n += 1)
        await unread.watch(command(), async (ending) => {
          ending.recordQueued(chat);
          ending.settle(ok);
        });
      return performance.now() - startedAt;
    };
    const runs = [await one(), await one(), await one(), await one()];
    // In milliseconds for a thousand: a slow machine takes ten times as long as this one.
    expect(Math.min(...runs)).toBeLessThan(100);
  });
});
