import { describe, expect, it, vi } from 'vitest';
import { UserLimits } from '../../../api/chat/user-limits.js';
import type { Failure } from '../../../shared/failures.js';
import { patience } from '../../support/patience.js';

const limited = expect.objectContaining({ code: 'rate_limited' });
const nothing = async () => undefined;
const one = { user: 'one', bytes: 0 };
const another = { user: 'another', bytes: 0 };

/** Keeps a place of the user until it is told to end. */
function occupy(limits: UserLimits, load = one) {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const ended = limits.run(load, () => promise);
  return { ended, answer: () => resolve('answered'), fail: () => reject(new Error('failed')) };
}

describe('UserLimits', () => {
  it('refuses nothing without limits', async () => {
    const limits = new UserLimits({});
    const places = Array.from({ length: 1000 }, () => occupy(limits));
    for (const { answer } of places) answer();
    expect(await Promise.all(places.map(({ ended }) => ended))).toEqual(Array(1000).fill('answered'));
  });

  it('lets a user have so many requests in flight, and lets the next one retry after a second', async () => {
    const limits = new UserLimits({ maxInFlight: () => 2 });
    const places = [occupy(limits), occupy(limits)];
    const work = vi.fn(nothing);
    const refusal = await limits.run(one, work).catch((error: Failure) => error);
    expect(refusal).toMatchObject({ code: 'rate_limited', status: 429, facts: { retryAfterMs: 1000 } });
    expect(work).not.toHaveBeenCalled();
    await limits.run(another, work);
    expect(work).toHaveBeenCalledOnce();
    for (const { answer } of places) answer();
  });

  it('gives a place back exactly once, however the request ends', async () => {
    const limits = new UserLimits({ maxInFlight: () => 2 });
    const staying = occupy(limits);
    for (const end of ['answer', 'fail', 'answer'] as const) {
      const going = occupy(limits);
      await expect(limits.run(one, nothing)).rejects.toEqual(limited);
      going[end]();
      await going.ended.catch(() => undefined);
    }
    // Had one been given back twice, two more would fit beside the one that stays.
    const second = occupy(limits);
    await expect(limits.run(one, nothing)).rejects.toEqual(limited);
    for (const { answer } of [staying, second]) answer();
  });

  it('counts a chat that goes on after its request until it has ended, successfully or not', async () => {
    const limits = new UserLimits({ maxInFlight: () => 1 });
    for (const end of ['resolve', 'reject'] as const) {
      const going = Promise.withResolvers<void>();
      await limits.run(one, async () => limits.countUntil(one, going.promise));
      await expect(limits.run(one, nothing)).rejects.toEqual(limited);
      going[end]();
      await vi.waitFor(() => limits.run(one, nothing), patience);
    }
  });

  it('lets a user have so many requests in a window, and says when the next one begins', async () => {
    const limits = new UserLimits({ maxPerWindow: 3 });
    for (let count = 0; count < 3; count += 1) await limits.run(one, nothing);
    const refusal = await limits.run(one, nothing).catch((error: Failure) => error);
    expect(refusal).toMatchObject({ code: 'rate_limited' });
    const { retryAfterMs = 0 } = (refusal as Failure).facts;
    expect(retryAfterMs).toBeGreaterThan(50_000);
    expect(retryAfterMs).toBeLessThanOrEqual(60_000);
    await limits.run(another, nothing);
  });

  it('does not count reading a stream again towards the window, but as in flight (finding P5)', async () => {
    const limits = new UserLimits({ maxPerWindow: 1, maxInFlight: () => 1 });
    for (let count = 0; count < 5; count += 1) await limits.runUncounted(one, nothing);
    const running = occupy(limits);
    await expect(limits.runUncounted(one, nothing)).rejects.toEqual(limited);
    running.answer();
    await running.ended;
    await limits.runUncounted(one, nothing);
    await expect(limits.run(one, nothing)).rejects.toEqual(limited);
  });

  it('begins again when the window is over, however often the user came in it', async () => {
    const limits = new UserLimits({ maxPerWindow: 1, windowSeconds: 0.05 });
    await limits.run(one, nothing);
    await expect(limits.run(one, nothing)).rejects.toEqual(limited);
    await vi.waitFor(() => limits.run(one, nothing), { ...patience, interval: 5 });
  });

  it('gives the place of a request back that its rate refuses', async () => {
    const limits = new UserLimits({ maxInFlight: () => 1, maxPerWindow: 1, windowSeconds: 0.05 });
    await limits.run(one, nothing);
    await expect(limits.run(one, nothing)).rejects.toEqual(limited);
    await vi.waitFor(() => limits.run(one, nothing), { ...patience, interval: 5 });
  });

  it('does not count a request that those in flight refuse', async () => {
    const limits = new UserLimits({ maxInFlight: () => 1, maxPerWindow: 2 });
    const first = occupy(limits);
    for (let count = 0; count < 5; count += 1)
      await expect(limits.run(one, nothing)).rejects.toEqual(limited);
    first.answer();
    await first.ended;
    await limits.run(one, nothing);
    await expect(limits.run(one, nothing)).rejects.toEqual(limited);
  });

  it('follows a number of places that changes', async () => {
    let maxInFlight: number | undefined = 1;
    const limits = new UserLimits({ maxInFlight: () => maxInFlight });
    const first = occupy(limits);
    await expect(limits.run(one, nothing)).rejects.toEqual(limited);
    maxInFlight = undefined;
    await limits.run(one, nothing);
    first.answer();
  });

  it('counts the bytes of a chat that goes on after its request', () => {
    const countUntil = vi.fn();
    const limits = new UserLimits({ bytesInFlight: { countUntil } });
    const ended = Promise.resolve();
    limits.countUntil({ user: 'one', bytes: 100 }, ended);
    expect(countUntil).toHaveBeenCalledExactlyOnceWith('one', 100, ended);
  });
});
