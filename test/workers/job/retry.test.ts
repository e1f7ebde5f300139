import { afterEach, describe, expect, it, vi } from 'vitest';
import { Failure, failureCodes } from '../../../shared/failures.js';
import type { Call } from '../../../workers/job/call.js';
import { RetryBudget, withOneRetry } from '../../../workers/job/retry.js';
import type { Slot } from '../../../workers/job/slots.js';
import { callOf } from '../../support/calls.js';
import { openSlot } from '../../support/circuits.js';

interface Limits {
  inMs?: number;
  budget?: { earn(): void; spend(): boolean };
  signal?: AbortSignal;
  cooldown?: { readonly leftMs: number };
  hasFallback?: boolean;
  /** How long an attempt takes, on a clock that only attempts move. */
  tookMs?: number;
}

/** How often the slot was parked. */
let parked = 0;

let attempts = 0;
afterEach(() => {
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
    nowMs += tookMs ?? 0;
    if (ending !== 'done') throw ending;
    return 'done';
  };
  const deadline = nowMs + inMs;
  const circuit = { run: () => expect.unreachable(), cooldown, budget };
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
