import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Turn } from '../../../shared/conversation.js';
import { Failure, failureCodes } from '../../../shared/failures.js';
import type { Call } from '../../../workers/job/call.js';
import { ModelMemory } from '../../../workers/job/model-memory.js';
import type { ModelRequest, NarrowedRequest } from '../../../workers/job/model-request.js';
import { RetryBudget, withOneRetry } from '../../../workers/job/retry.js';
import type { Slot } from '../../../workers/job/slots.js';
import { classifyError } from '../../../workers/providers/error-classification.js';
import { callOf } from '../../support/calls.js';
import { openSlot } from '../../support/circuits.js';

interface Limits {
  inMs?: number;
  budget?: { earn(): void; spend(): boolean };
  signal?: AbortSignal;
  cooldown?: { readonly leftMs: number };
  hasFallback?: boolean;
  attempt?: number;
  isStrict?: true;
  hasBegun?: boolean;
  request?: ModelRequest;
  memory?: ModelMemory;
  /** How long an attempt takes, on a clock that only attempts move. */
  tookMs?: number;
}

/** How often the slot was parked. */
let parked = 0;

/** The request of each attempt, and the hints that it leaves out. */
let asked: NarrowedRequest[] = [];

let attempts = 0;
afterEach(() => {
  asked = [];
  vi.restoreAllMocks();
  attempts = 0;
  parked = 0;
});

/** Runs attempts that end as listed, the last one for good. */
async function run(
  endings: (unknown | 'done')[],
  {
    inMs = 60_000,
    budget = new RetryBudget(),
    signal = new AbortController().signal,
    cooldown = { leftMs: 0 },
    tookMs,
    memory = new ModelMemory(),
    ...limits
  }: Limits = {},
): Promise<unknown> {
  const park = () => {
    parked += 1;
  };
  const slot: Slot = { ...openSlot(), isParked: false, park };
  let nowMs = Date.now();
  const now = tookMs === undefined ? Date.now : () => nowMs;
  const attempt = async (call: Call) => {
    expect(call.kind.isRetry).toBe(attempts > 0);
    const ending = endings[Math.min(attempts, endings.length - 1)];
    attempts += 1;
    asked.push(call.narrowed);
    nowMs += tookMs ?? 0;
    if (ending !== 'done') throw ending;
    return 'done';
  };
  const deadline = nowMs + inMs;
  const circuit = { run: () => expect.unreachable(), park: () => {}, cooldown, budget, memory };
  const call = callOf({ deadline, now, stop: signal, slot, circuit, ...limits });
  return withOneRetry(call, attempt).catch((error) => error);
}

/** A cooldown that has another length after the first look at it. */
const growing = (firstMs: number, laterMs: () => number) => {
  let reads = 0;
  return {
    get leftMs() {
      reads += 1;
      return reads === 1 ? firstMs : Math.max(0, laterMs());
    },
  };
};
const failed = () => new Failure('provider_error');
const limited = (retryAfterMs: number) => new Failure('provider_rate_limited', { retryAfterMs });

describe('withOneRetry', () => {
  it.each([
    ['three seconds are not waited for', 3001, 60_000, 1],
    ['a pause that leaves less than a third of the time is not waited for', 700, 1000, 1],
    ['a shorter one is', 600, 1000, 2],
  ])('leaves time for a fallback: %s', async (_, retryAfterMs, inMs, calls) => {
    vi.spyOn(Math, 'random').mockReturnValue(0);
    await run([limited(retryAfterMs), 'done'], { inMs, tookMs: 0, hasFallback: true });
    expect(attempts).toBe(calls);
  });

  it('leaves a fallback half of the time when the retry takes as long as the first attempt', async () => {
    const slow = { inMs: 55_000, tookMs: 30_000 };
    const failure = failed();
    expect(await run([failure, 'done'], { ...slow, hasFallback: true })).toBe(failure);
    expect(attempts).toBe(1);
    attempts = 0;
    expect(await run([failure, 'done'], slow)).toBe('done');
    attempts = 0;
    expect(await run([failure, 'done'], { ...slow, tookMs: 15_000, hasFallback: true })).toBe('done');
  });

  it.each(['provider_error', 'provider_rate_limited'] as const)('repeats after %s, once', async (code) => {
    const last = failed();
    expect(await run([new Failure(code), last])).toBe(last);
    expect(attempts).toBe(2);
  });

  it('keeps the first failure when that has opened the breaker, which refuses the repetition', async () => {
    const first = failed();
    expect(await run([first, new Failure('provider_unavailable')])).toBe(first);
    expect(attempts).toBe(2);
  });

  it.each([
    ...failureCodes
      .filter((code) => code !== 'provider_error' && code !== 'provider_rate_limited')
      .map((code) => new Failure(code, { retryable: true })),
    new Failure('provider_error', { retryable: false }),
    new TypeError('x'),
  ])('does not repeat after %s', async (error) => {
    expect(await run([error, 'done'])).toBe(error);
    expect(attempts).toBe(1);
  });

  it.each([
    ['a fraction of a second when nothing is said', failed(), 95, 0],
    ['no less though the provider says that it need not wait', limited(0), 95, 0],
    ['as long as the provider asks', limited(600), 595, 1],
  ])('waits %s', async (_, failure, atLeastMs, timesParked) => {
    const startedAt = performance.now();
    expect(await run([failure, 'done'])).toBe('done');
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(atLeastMs);
    expect(parked).toBe(timesParked);
  });

  it('waits until the cooldown is over, also when it becomes longer, unless that is too long', async () => {
    const endsAt = performance.now() + 900;
    expect(await run([failed(), 'done'], { cooldown: growing(500, () => endsAt - performance.now()) })).toBe(
      'done',
    );
    expect(performance.now()).toBeGreaterThanOrEqual(endsAt);
    attempts = 0;
    const error = failed();
    expect(await run([error, 'done'], { cooldown: growing(0, () => 59_900) })).toBe(error);
    expect(attempts).toBe(1);
  });

  it.each<[string, Failure, Limits]>([
    ['the provider asks for more time than there is', limited(59_900), {}],
    ['the deadline is near', failed(), { inMs: 200 }],
    ['the deadline has come', failed(), { inMs: 0 }],
    ['the cooldown is longer than the time', failed(), { inMs: 5000, cooldown: { leftMs: 4900 } }],
    ['the call took all of its time', new Failure('provider_timeout'), {}],
  ])('gives up at once when %s, and spends nothing', async (_, error, limits) => {
    const budget = { earn: vi.fn(), spend: vi.fn(() => true) };
    expect(await run([error, 'done'], { ...limits, budget })).toBe(error);
    expect([attempts, budget.earn.mock.calls.length, budget.spend.mock.calls.length]).toEqual([1, 1, 0]);
  });

  it('spends for a repetition, and makes none without budget', async () => {
    const budget = { earn: () => {}, spend: vi.fn(() => true) };
    await run([failed(), 'done'], { budget });
    expect([attempts, budget.spend.mock.calls.length]).toEqual([2, 1]);
    attempts = 0;
    await run([failed(), 'done'], { budget: { ...budget, spend: () => false } });
    expect(attempts).toBe(1);
  });

  it('ends the pause with the reason of the signal', async () => {
    const controller = new AbortController();
    const running = run([limited(30_000), 'done'], { signal: controller.signal });
    const reason = new Failure('provider_unavailable');
    setImmediate(() => controller.abort(reason));
    expect(await running).toBe(reason);
    expect(attempts).toBe(1);
  });
});

describe('withOneRetry of a refused hint', () => {
  const refusal = (text: string) => classifyError(new Error(text), { status: 400, text });
  const hint = refusal('`temperature` is deprecated for this model.');
  const effort = refusal("Please set reasoning_effort to 'none' to use function tools.");
  const signature = refusal('Invalid `signature` in `thinking` block');
  const requestOf = (parameters: ModelRequest['parameters'], own: Partial<ModelRequest> = {}) => ({
    ...{ model: 'm', maxOutputTokens: 1, turns: [], parameters },
    ...own,
  });
  const tuned = requestOf({ temperature: 0.5, topP: 1, stop: ['x'], parallelToolCalls: false });
  const tools = [{ name: 'f' }];
  const noBudget = { earn: () => {}, spend: () => expect.unreachable() };

  it.each<[string, Limits]>([
    ['at once, and spends nothing', { budget: noBudget, cooldown: { leftMs: 60_000 } }],
    ['also at a provider of a fallback', { attempt: 2 }],
    ['also with a fallback behind it, and little time', { hasFallback: true, inMs: 200 }],
  ])('repeats the call without hints, %s', async (_, limits) => {
    expect(await run([hint, 'done'], { request: tuned, tookMs: 0, ...limits })).toBe('done');
    expect(asked.map(({ request }) => request.parameters)).toEqual([tuned.parameters, { stop: ['x'] }]);
    expect(asked.map(({ ignored }) => ignored)).toEqual([undefined, ['temperature', 'parallelToolCalls']]);
    expect(parked).toBe(0);
  });

  it('repeats it once, for a hint or for what passes, and fails as the second call did', async () => {
    const passing = failed();
    expect(await run([hint, passing, 'done'], { request: tuned })).toBe(passing);
    expect(attempts).toBe(2);
    attempts = 0;
    const unavailable = new Failure('provider_unavailable');
    expect(await run([hint, unavailable], { request: tuned })).toBe(unavailable);
  });

  it('neither fails the chat nor stops its fallback when the one retry was spent before, and is remembered', async () => {
    const passing = failed();
    const memory = new ModelMemory();
    expect(await run([passing, hint, 'done'], { request: tuned, memory })).toBe(passing);
    expect(attempts).toBe(2);
    attempts = 0;
    const withTools = requestOf({ temperature: 0.5, tools });
    const second = await run([hint, effort, 'done'], { request: withTools, memory: new ModelMemory() });
    expect([attempts, second]).toMatchObject([2, { code: 'provider_error', retryable: true }]);
    attempts = 0;
    expect(await run(['done'], { request: tuned, memory })).toBe('done');
    expect(asked.at(-1)?.ignored).toEqual(['temperature']);
  });

  it.each<[string, Limits, Failure]>([
    ['the request has none', { request: requestOf({ stop: ['x'] }) }, hint],
    ['the reply has begun', { request: tuned, hasBegun: true }, hint],
    ['there is no signature to leave out', { request: tuned }, signature],
    ['the caller has to mend it', { request: tuned }, refusal('tool_choice: not supported for this model.')],
  ])('does not repeat it when %s', async (_, limits, error) => {
    expect(await run([error, 'done'], limits)).toBe(error);
    expect(attempts).toBe(1);
  });

  it('fails a chat that must not be asked without its hints, also when the refusal is known', async () => {
    const memory = new ModelMemory();
    await run([hint, 'done'], { request: tuned, memory });
    attempts = 0;
    asked = [];
    expect(await run([hint, 'done'], { request: tuned, memory, isStrict: true })).toBe(hint);
    expect(asked.map(({ ignored }) => ignored)).toEqual([undefined]);
  });

  it('asks a model that reasons no more with tools not to reason, also where the request says nothing', async () => {
    expect(await run([effort, 'done'], { request: requestOf({ tools }) })).toBe('done');
    expect(asked[1]).toMatchObject({ request: { parameters: { tools, reasoningEffort: 'none' } } });
    expect(asked[1]?.ignored).toBeUndefined();
    const high = requestOf({ tools, reasoningEffort: 'high' });
    attempts = 0;
    expect(await run([effort, 'done'], { request: high })).toBe('done');
    expect(asked[3]).toMatchObject({ ignored: ['reasoningEffort'] });
    attempts = 0;
    expect(await run([effort, 'done'], { request: requestOf({ tools, reasoningEffort: 'none' }) })).toBe(
      effort,
    );
  });

  it('leaves the opaque parts of a conversation out when a signature is refused, and nothing else', async () => {
    const called: Turn = {
      role: 'assistant',
      content: [
        { type: 'opaque', provider: 'anthropic', data: 's' },
        { type: 'tool_call', id: 'a', name: 'f', arguments: '{}' },
      ],
    };
    const asking: Turn = { role: 'user', content: 'Hello' };
    const memory = new ModelMemory();
    const request = requestOf({ temperature: 0.5 }, { turns: [asking, called] });
    expect(await run([signature, 'done'], { request, memory })).toBe('done');
    expect(asked[1]).toMatchObject({
      request: { parameters: { temperature: 0.5 }, turns: [asking, { content: [{ type: 'tool_call' }] }] },
      ignored: undefined,
    });
    attempts = 0;
    await run(['done'], { request, memory });
    expect(asked[2]?.request.turns).toEqual(request.turns);
  });

  it('is remembered for an hour, for this model and this value alone', async () => {
    let now = 1;
    const memory = new ModelMemory({ now: () => now });
    await run([hint, 'done'], { request: tuned, memory });
    attempts = 0;
    now += 3_600_000;
    await run(['done'], { request: tuned, memory });
    expect(asked[2]).toMatchObject({
      request: { parameters: { stop: ['x'], parallelToolCalls: false } },
      ignored: ['temperature'],
    });
    const warmer = requestOf({ ...tuned.parameters, temperature: 0.6 });
    for (const request of [{ ...tuned, model: 'other' }, warmer]) {
      attempts = 0;
      await run(['done'], { request, memory });
    }
    attempts = 0;
    now += 1;
    await run(['done'], { request: tuned, memory });
    expect(asked.slice(3).map(({ request }) => request.parameters)).toEqual([
      tuned.parameters,
      warmer.parameters,
      tuned.parameters,
    ]);
  });

  it('is remembered of what was refused: neither other hints of the request nor other values are left out', async () => {
    const memory = new ModelMemory();
    const odd = requestOf({ temperature: 0.5, reasoningEffort: 'max' });
    await run([refusal("'reasoning_effort' is not supported."), 'done'], { request: odd, memory });
    for (const parameters of [{ temperature: 0.5, reasoningEffort: 'high' as const }, odd.parameters]) {
      attempts = 0;
      await run(['done'], { request: requestOf(parameters), memory });
    }
    expect(asked.slice(2).map(({ request }) => request.parameters)).toEqual([
      { temperature: 0.5, reasoningEffort: 'high' },
      { temperature: 0.5 },
    ]);
  });

  it('is remembered of reasoning with tools for requests with tools alone', async () => {
    const memory = new ModelMemory();
    await run([effort, 'done'], { request: requestOf({ tools }), memory });
    for (const parameters of [{ reasoningEffort: 'high' as const }, { tools, verbosity: 'low' as const }]) {
      attempts = 0;
      await run(['done'], { request: requestOf(parameters), memory });
    }
    expect(asked.slice(2)).toMatchObject([
      { request: { parameters: { reasoningEffort: 'high' } }, ignored: undefined },
      { request: { parameters: { tools, reasoningEffort: 'none', verbosity: 'low' } }, ignored: undefined },
    ]);
  });
});

describe('RetryBudget', () => {
  const spendAll = (budget: RetryBudget, user = 'M') => {
    let spent = 0;
    while (budget.spend(user)) spent += 1;
    return spent;
  };
  const earn = (budget: RetryBudget, times: number) => {
    for (let n = 0; n < times; n += 1) budget.earn('M');
  };

  // Ten times 0.1 is 0.9999999999999999.
  it('starts with ten, saves up no more, and allows one for every ten attempts, none for nine', () => {
    const budget = new RetryBudget();
    earn(budget, 1000);
    expect([spendAll(budget), spendAll(new RetryBudget())]).toEqual([10, 10]);
    earn(budget, 9);
    expect(spendAll(budget)).toBe(0);
    earn(budget, 1);
    expect(spendAll(budget)).toBe(1);
  });

  it('keeps what one user leaves for the others', () => {
    const budget = new RetryBudget();
    earn(budget, 1000);
    spendAll(budget);
    expect(spendAll(budget, 'V')).toBe(5);
    earn(budget, 100);
    expect(spendAll(budget)).toBe(7);
    expect(budget.spend('W')).toBe(true);
  });
});
