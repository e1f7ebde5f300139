import type { Request, Response } from 'express';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { limitAnonymousReads } from '../../../api/access/login-limiter.js';

beforeEach(() => void vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

/** A limiter of so many reads a second; it says which of so many requests are passed on or limited. */
function startLimiter(perSecond: number) {
  const limit = limitAnonymousReads({ perSecond });
  const ask = async ({ ip = '192.0.2.1', method = 'GET', authorization = '' }): Promise<unknown> => {
    const request = { ip, method, headers: { ...(authorization && { authorization }) } };
    const next = vi.fn();
    try {
      await limit(request as Request, {} as Response, next);
      return next.mock.calls.length;
    } catch (error) {
      return error;
    }
  };
  return (count: number, request: Parameters<typeof ask>[0] = {}) =>
    Promise.all(Array.from({ length: count }, () => ask(request)));
}

const allowed = (count: number) => Array(count).fill(1);
const limitedFor = (retryAfterMs: number) =>
  expect.objectContaining({ code: 'rate_limited', facts: { retryAfterMs } });

describe('limitAnonymousReads', () => {
  it('more reads from an address than ten seconds allow -> it is told to wait until they are over', async () => {
    const ask = startLimiter(2);
    expect(await ask(19)).toEqual(allowed(19));
    expect(await ask(1, { method: 'HEAD' })).toEqual(allowed(1));
    vi.advanceTimersByTime(4000);
    expect(await ask(1)).toEqual([limitedFor(6000)]);
    expect(await ask(1, { ip: '192.0.2.2' })).toEqual(allowed(1));
    vi.advanceTimersByTime(6000);
    expect(await ask(1)).toEqual(allowed(1));
  });

  it('writes, and requests with credentials -> are not counted', async () => {
    const ask = startLimiter(2);
    expect(await ask(21, { authorization: 'Bearer x' })).toEqual(allowed(21));
    expect(await ask(21, { method: 'POST' })).toEqual(allowed(21));
    expect(await ask(20)).toEqual(allowed(20));
  });

  it('no limit -> nothing is counted', async () => {
    expect(await startLimiter(0)(50)).toEqual(allowed(50));
  });
});
