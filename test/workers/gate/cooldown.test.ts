import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Failure } from '../../../shared/failures.js';
import { Cooldown } from '../../../workers/gate/cooldown.js';

let cooldown: Cooldown;
let published: number[];
let changes: boolean[];

beforeEach(() => {
  vi.useFakeTimers();
  published = [];
  changes = [];
  cooldown = new Cooldown({
    onChange: () => changes.push(cooldown.leftMs > 0),
    publishLimit: (cooldownMs) => published.push(cooldownMs),
  });
});
afterEach(() => {
  cooldown.dispose();
  vi.useRealTimers();
});

const limited = (retryAfterMs?: number) =>
  new Failure('provider_rate_limited', retryAfterMs === undefined ? {} : { retryAfterMs });
/** A call that ends when the test says so. */
function startCall(isRetry = false) {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const kind = isRetry ? 'retry' : 'first';
  return { ended: cooldown.watch({ kind }, () => promise).catch((same) => same), resolve, reject };
}
const fail = (failure: Error, isRetry = false) => {
  const { ended, reject } = startCall(isRetry);
  reject(failure);
  return ended;
};

describe('watch', () => {
  it.each([
    [3000, 3000],
    [3_600_000, 60_000],
  ])(
    'with a Retry-After of %d ms lasts %d ms, a minute at most, and publishes that',
    async (asked, lasts) => {
      const failure = limited(asked);
      expect(await fail(failure)).toBe(failure);
      expect([cooldown.leftMs, published, changes]).toEqual([lasts, [lasts], [true]]);
      // It is never shortened.
      await fail(limited(1000));
      await fail(limited(0));
      expect([cooldown.leftMs, published]).toEqual([lasts, [lasts]]);
    },
  );

  it.each([undefined, 0, 100])(
    'with a Retry-After of %j ms doubles a pause of 250 ms up to 8 s, until a call is answered',
    async (retryAfterMs) => {
      for (let n = 0; n < 9; n += 1) await fail(limited(retryAfterMs));
      expect(published).toEqual([250, 500, 1000, 2000, 4000, 8000]);
      expect(cooldown.leftMs).toBe(8000);
      await vi.advanceTimersByTimeAsync(8000);
      expect(await cooldown.watch({ kind: 'first' }, async () => 'answered')).toBe('answered');
      await fail(limited(retryAfterMs));
      expect(published.at(-1)).toBe(250);
    },
  );

  it('doubles the pause once for concurrent 429s, not for a retry, and keeps it at the answer to an older call', async () => {
    const calls = Array.from({ length: 20 }, () => startCall());
    const older = startCall();
    for (const call of calls) call.reject(limited());
    await Promise.all(calls.map(({ ended }) => ended));
    await fail(limited(), true);
    expect(published).toEqual([250]);
    older.resolve();
    await older.ended;
    await fail(limited());
    expect(published).toEqual([250, 500]);
  });

  it('does not begin for any other failure', async () => {
    for (const code of ['provider_error', 'provider_timeout', 'provider_rejected'] as const)
      await fail(new Failure(code, { retryAfterMs: 5000 }));
    await fail(new Error('x'));
    expect([cooldown.leftMs, changes]).toEqual([0, []]);
  });
});

describe('extend', () => {
  it('begins without being published, lasts a minute at most as well, ends by itself, and can begin again', () => {
    cooldown.extend(1e9);
    expect(cooldown.leftMs).toBe(60_000);
    vi.advanceTimersByTime(60_000);
    expect(cooldown.leftMs).toBe(0);
    cooldown.extend(20);
    vi.advanceTimersByTime(20);
    expect([changes, published]).toEqual([[true, false, true, false], []]);
  });

  it('reports nothing after it was disposed of', () => {
    cooldown.extend(20);
    cooldown.dispose();
    vi.advanceTimersByTime(20);
    cooldown.extend(20);
    expect([cooldown.leftMs, changes]).toEqual([0, [true]]);
  });
});
