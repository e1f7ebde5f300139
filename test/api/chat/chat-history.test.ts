import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ChatCommand, ResolvedChat } from '../../../api/chat/chat-command.js';
import { ChatEnding } from '../../../api/chat/chat-history.js';
import { Failure } from '../../../shared/failures.js';
import type { RecentRequest } from '../../../shared/history.js';
import type { Outcome } from '../../../shared/protocol/outcome.js';
import { promptCanary as canary } from '../../support/canaries.js';

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
  vi.useFakeTimers({ now: 1_000_000, toFake: ['Date', 'performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** Queued 150 ms after its request came, and over after three seconds more. */
const watch = (outcome: Outcome | undefined, own: Partial<ChatCommand> = {}, queued = chat) =>
  ChatEnding.watch(command(own), history, async (ending) => {
    vi.advanceTimersByTime(50);
    ending.recordQueued(queued);
    vi.advanceTimersByTime(3000);
    ending.settle(outcome);
  });

describe('ChatEnding', () => {
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

  it('records no time that is before another or after the end, whatever other clocks say', async () => {
    await watch({ ...ok, queueMs: 1e9, providerMs: 1, firstTokenMs: -5 });
    expect(ended[0]).toMatchObject({ queuedMs: 150, startedMs: 3150, firstTokenMs: 3150, endedMs: 3150 });
    await watch({ ...ok, queueMs: -5, providerMs: -5 });
    expect(ended[1]).toMatchObject({ queuedMs: 150, startedMs: 150, queueMs: 0, providerMs: 0 });
  });

  it('records what was refused before it was queued, and a caller who left as cancelled', async () => {
    const refuse = (own: Partial<ChatCommand>, error: unknown) =>
      ChatEnding.watch(command(own), history, () => Promise.reject(error)).catch(() => undefined);
    await refuse({}, new Failure('overloaded'));
    await refuse({ signal: left.signal }, new Failure('timeout'));
    await refuse({}, new TypeError('x'));
    expect(ended.map(({ code }) => code)).toEqual(['overloaded', 'cancelled', 'internal']);
    expect(ended[0]).toMatchObject({ attempts: [], endedMs: 100 });
    expect(ended[0]).not.toHaveProperty('queuedMs');
  });

  it('records the end of a chat that goes on without its request, once', async () => {
    const run = (wait: Promise<Outcome | 'joined' | undefined>) =>
      ChatEnding.watch(command(), history, async (ending) => {
        ending.recordQueued(chat);
        void ending.follow(wait);
        throw new Failure('timeout');
      }).catch(() => undefined);
    await run(Promise.resolve(ok));
    await run(Promise.resolve('joined'));
    await run(Promise.reject(new Error('not added')));
    await vi.waitFor(() => expect(ended).toHaveLength(2));
    expect(ended.map(({ code }) => code)).toEqual(['ok', 'queue_unavailable']);
  });

  it('records nothing of what had ended before its request, nor long names', async () => {
    await ChatEnding.watch(command(), history, async (ending) => ending.forget());
    expect(ended).toEqual([]);
    await watch({ ...ok, model: 'x'.repeat(10_000) });
    expect(ended[0]?.model).toHaveLength(200);
  });

  it('costs a few microseconds', async () => {
    vi.useRealTimers();
    const one = async () => {
      const startedAt = performance.now();
      for (let n = 0; n < 1000; n += 1)
        await ChatEnding.watch(
          command(),
          { recordArrival: () => {}, recordEnd: () => {} },
          async (ending) => {
            ending.recordQueued(chat);
            ending.settle(ok);
          },
        );
      return performance.now() - startedAt;
    };
    const runs = [await one(), await one(), await one(), await one()];
    // In milliseconds for a thousand: a slow machine takes ten times as long as this one.
    expect(Math.min(...runs)).toBeLessThan(100);
  });
});
