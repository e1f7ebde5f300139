import { afterEach, describe, expect, it, vi } from 'vitest';
import { Failure, failureCodes } from '../../../shared/failures.js';
import type { Call } from '../../../workers/job/call.js';
import { RetryBudget, withOneRetry } from '../../../workers/job/retry.js';
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
  const slot = {
    ...openSlot(),
    isParked: false,
    park: () => {
      parked += 1;
    },
  };
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
    expect(await run([new Failure(code), 'done'])).toBe('done');
    expect(attempts).toBe(2);
    attempts = 0;
    const last = failed();
    expect(await run([new Failure(code), last])).toBe(last);
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
    ['when nothing is said', failed()],
    ['though the provider says that it need not', limited(0)],
    ['though the provider gives a date in the past', new Failure('provider_error', { retryAfterMs: 0 })],
  ])('waits a fraction of a second %s', async (_, failure) => {
    const startedAt = performance.now();
    await run([failure, 'done']);
    const tookMs = performance.now() - startedAt;
    expect(tookMs).toBeGreaterThanOrEqual(95);
    expect(parked).toBe(0);
  });

  it('waits as long as the provider asks', async () => {
    const startedAt = performance.now();
    expect(await run([limited(600), 'done'])).toBe('done');
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(595);
    expect(parked).toBe(1);
  });

  it('waits until the cooldown is over, also when it becomes longer', async () => {
    const endsAt = performance.now() + 900;
    let reads = 0;
    const cooldown = {
      get leftMs() {
        reads += 1;
        return reads === 1 ? 500 : Math.max(0, endsAt - performance.now());
      },
    };
    expect(await run([failed(), 'done'], { cooldown })).toBe('done');
    expect(performance.now()).toBeGreaterThanOrEqual(endsAt);
  });

  it('makes no other call when the cooldown is too long', async () => {
    const error = failed();
    let spent = 0;
    const spend = () => {
      spent += 1;
      return true;
    };
    const budget = { earn: () => {}, spend };
    expect(await run([error, 'done'], { inMs: 5000, budget, cooldown: { leftMs: 4900 } })).toBe(error);
    expect({ attempts, spent }).toEqual({ attempts: 1, spent: 0 });
    let reads = 0;
    const longer = {
      get leftMs() {
        reads += 1;
        return reads === 1 ? 0 : 59_900;
      },
    };
    attempts = 0;
    expect(await run([error, 'done'], { cooldown: longer })).toBe(error);
    expect(attempts).toBe(1);
  });

  it.each([
    ['the provider asks for more time than there is', limited(59_900), 60_000],
    ['the deadline is near', failed(), 200],
    ['the deadline has come', failed(), 0],
  ])('gives up at once when %s', async (_, error, inMs) => {
    expect(await run([error, 'done'], { inMs })).toBe(error);
    expect(attempts).toBe(1);
  });

  it('earns for every first attempt, spends only for a repetition that could be made, and makes none without', async () => {
    const counts = { earned: 0, spent: 0 };
    const budget = {
      earn: () => {
        counts.earned += 1;
      },
      spend: () => {
        counts.spent += 1;
        return true;
      },
    };
    expect(await run(['done'], { budget })).toBe('done');
    await run([limited(60_000), 'done'], { budget });
    await run([new Failure('provider_timeout'), 'done'], { budget });
    expect(counts).toEqual({ earned: 3, spent: 0 });
    attempts = 0;
    await run([failed(), 'done'], { budget });
    expect(counts).toEqual({ earned: 4, spent: 1 });
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

  it('starts with ten, and saves up no more', () => {
    const budget = new RetryBudget();
    earn(budget, 1000);
    expect(spendAll(budget)).toBe(10);
    expect(spendAll(new RetryBudget())).toBe(10);
  });

  // Ten times 0.1 is 0.9999999999999999.
  it('allows one retry for every ten attempts, and none for nine', () => {
    const budget = new RetryBudget();
    spendAll(budget);
    earn(budget, 9);
    expect(budget.spend('M')).toBe(false);
    earn(budget, 1);
    expect(budget.spend('M')).toBe(true);
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
