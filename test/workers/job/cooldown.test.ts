import { EventEmitter, once } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Failure } from '../../../shared/failures.js';
import { Cooldown } from '../../../workers/job/cooldown.js';
import { callOf } from '../../support/calls.js';
import { patience } from '../../support/patience.js';

let cooldown: Cooldown;
let published: number[];
let changes: boolean[];
let events: EventEmitter;

beforeEach(() => {
  published = [];
  changes = [];
  events = new EventEmitter();
  cooldown = new Cooldown({
    onChange: () => {
      changes.push(cooldown.leftMs > 0);
      events.emit('change');
    },
    publishLimit: (cooldownMs) => published.push(cooldownMs),
  });
});
afterEach(() => cooldown.dispose());

const first = callOf();
const limited = (retryAfterMs?: number) =>
  new Failure('provider_rate_limited', retryAfterMs === undefined ? {} : { retryAfterMs });
const fail = (failure: Error) => cooldown.watch(first, () => Promise.reject(failure)).catch((same) => same);
const answer = () => cooldown.watch(first, async () => 'answered');

/** A call that ends when the test says so. */
function startCall() {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  return { ended: cooldown.watch(first, () => promise).catch(() => undefined), resolve, reject };
}

describe('watch', () => {
  it('returns and throws what the call does', async () => {
    expect(await answer()).toBe('answered');
    const failure = limited(1000);
    expect(await fail(failure)).toBe(failure);
  });

  it.each([
    [3000, 3000],
    [3_600_000, 60_000],
  ])(
    'with a Retry-After of %d ms lasts %d ms, a minute at most, and publishes that',
    async (asked, lasts) => {
      await fail(limited(asked));
      expect(cooldown.leftMs).toBeGreaterThan(lasts - 2000);
      expect(cooldown.leftMs).toBeLessThanOrEqual(lasts);
      expect(published).toEqual([lasts]);
      expect(changes).toEqual([true]);
    },
  );

  it.each([undefined, 0, 100])(
    'with a Retry-After of %s doubles its own pause from a quarter of a second to eight',
    async (retryAfterMs) => {
      for (let n = 0; n < 8; n += 1) await fail(limited(retryAfterMs));
      expect(published).toEqual([250, 500, 1000, 2000, 4000, 8000]);
      expect(cooldown.leftMs).toBeLessThanOrEqual(8000);
    },
  );

  it('does not double for the retry of a call', async () => {
    await fail(limited());
    await cooldown.watch(callOf({ isRetry: true }), () => Promise.reject(limited())).catch(() => undefined);
    await fail(limited());
    expect(published).toEqual([250, 500]);
  });

  it('resets the pause after a call that was answered', async () => {
    for (let n = 0; n < 3; n += 1) await fail(limited());
    await answer();
    await fail(limited());
    expect(published).toEqual([250, 500, 1000]);
    await fail(limited());
    await fail(limited());
    await fail(limited());
    expect(published).toEqual([250, 500, 1000, 2000]);
  });

  it('doubles once for concurrent 429s', async () => {
    const calls = Array.from({ length: 20 }, startCall);
    for (const call of calls) call.reject(limited());
    await Promise.all(calls.map(({ ended }) => ended));
    expect(published).toEqual([250]);
    expect(cooldown.leftMs).toBeLessThanOrEqual(250);
  });

  it('does not reset the pause for the answer to an older call', async () => {
    const older = startCall();
    await fail(limited());
    older.resolve();
    await older.ended;
    await fail(limited());
    expect(published).toEqual([250, 500]);
  });

  it('does not begin for any other failure', async () => {
    for (const code of ['provider_error', 'provider_timeout', 'provider_rejected'] as const)
      await fail(new Failure(code, { retryAfterMs: 5000 }));
    await fail(new Error('x'));
    expect(cooldown.leftMs).toBe(0);
    expect(changes).toEqual([]);
  });

  it('is never shortened', async () => {
    await fail(limited(5000));
    await fail(limited(1000));
    await fail(limited(0));
    expect(cooldown.leftMs).toBeGreaterThan(4000);
    expect(published).toEqual([5000]);
  });
});

describe('extend', () => {
  it('begins without being published, and lasts a minute at most as well', () => {
    cooldown.extend(1e9);
    expect(cooldown.leftMs).toBeGreaterThan(50_000);
    expect(cooldown.leftMs).toBeLessThanOrEqual(60_000);
    expect(changes).toEqual([true]);
    expect(published).toEqual([]);
  });
});

describe('a cooldown', () => {
  it('ends by itself, reports that, and can begin again', async () => {
    cooldown.extend(20);
    await once(events, 'change');
    expect(cooldown.leftMs).toBe(0);
    cooldown.extend(20);
    await once(events, 'change');
    expect(changes).toEqual([true, false, true, false]);
  });

  it('reports nothing after it was disposed of', async () => {
    cooldown.extend(20);
    cooldown.dispose();
    await vi.waitFor(() => expect(cooldown.leftMs).toBe(0), patience);
    cooldown.extend(20);
    expect(cooldown.leftMs).toBe(0);
    expect(changes).toEqual([true]);
  });
});
