import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { LoginLimiter } from '../../../api/access/login-limiter.js';
import { counterOf } from '../../../api/access/rate-limit.js';
import { Failure } from '../../../shared/failures.js';
import { patience } from '../../support/patience.js';

const from = (address: string, credentials = 'Basic eDp5') => ({ address, credentials });
const limited = expect.objectContaining({ code: 'rate_limited' });

/** Counts failures until one is too many; how many were not. */
async function failUntilLimited(limiter: LoginLimiter, address: string) {
  for (let count = 0; ; count++) {
    const failure = await limiter.recordFailure(from(address)).catch((error: Failure) => error);
    if (failure) return { count, failure };
  }
}

describe('LoginLimiter', () => {
  it('allows 30 failures of a client within a minute, and then says how long to wait', async () => {
    const { count, failure } = await failUntilLimited(new LoginLimiter(), '192.0.2.1');
    expect(count).toBe(30);
    expect(failure).toBeInstanceOf(Failure);
    expect(failure).toMatchObject({ code: 'rate_limited', status: 429 });
    expect(failure.facts.retryAfterMs).toBeGreaterThan(50_000);
    expect(failure.facts.retryAfterMs).toBeLessThanOrEqual(60_000);
  });

  it('counts for each client alone', async () => {
    const limiter = new LoginLimiter();
    await failUntilLimited(limiter, '192.0.2.1');
    await expect(limiter.recordFailure(from('192.0.2.2'))).resolves.toBeUndefined();
    await expect(limiter.recordFailure(from('192.0.2.1'))).rejects.toEqual(limited);
  });

  it('begins again when the window is over, however many failures came in it', async () => {
    const limiter = new LoginLimiter({ maxFailures: 2, windowSeconds: 0.05 });
    await failUntilLimited(limiter, '192.0.2.1');
    await vi.waitFor(() => limiter.recordFailure(from('192.0.2.1')), { ...patience, interval: 5 });
  });

  it('admits one attempt after another from an address with too many failures, and not many who wait', async () => {
    const limiter = new LoginLimiter({ maxFailures: 1, intervalMs: 30 });
    await failUntilLimited(limiter, '192.0.2.1');
    const startedAt = performance.now();
    const tookMs = () => performance.now() - startedAt;
    const ends = await Promise.all(
      Array.from({ length: 20 }, () =>
        limiter.admit(from('192.0.2.1')).then(
          () => ({ code: 'admitted', ms: tookMs() }),
          ({ code }: Failure) => ({ code, ms: tookMs() }),
        ),
      ),
    );
    const admitted = ends.filter(({ code }) => code === 'admitted');
    const refused = ends.filter(({ code }) => code === 'rate_limited');
    expect(admitted.length + refused.length).toBe(20);
    for (const [n, { ms }] of admitted.entries()) expect(ms).toBeGreaterThan((n + 1) * 30 - 5);
    // Where the machine was slow to refuse, places had become free meanwhile.
    const refusedMs = Math.max(...refused.map(({ ms }) => ms));
    expect(admitted.length).toBeGreaterThanOrEqual(8);
    expect(admitted.length).toBeLessThanOrEqual(9 + refusedMs / 30);
  });

  it('bounds how many wait in all', async () => {
    const limiter = new LoginLimiter({ maxFailures: 0, intervalMs: 30 });
    const addresses = Array.from({ length: 3000 }, (_, n) => `10.0.${n >> 8}.${n & 255}`);
    await Promise.allSettled(addresses.map((address) => limiter.recordFailure(from(address))));
    const ends = await Promise.allSettled(addresses.map((address) => limiter.admit(from(address))));
    expect(ends.filter(({ status }) => status === 'fulfilled')).toHaveLength(1000);
  });

  it('admits at once what was accepted from the address, until it fails', async () => {
    const limiter = new LoginLimiter({ maxFailures: 1, intervalMs: 3_600_000 });
    limiter.recordSuccess(from('192.0.2.1', 'good'));
    await failUntilLimited(limiter, '192.0.2.1');
    await limiter.admit(from('192.0.2.1', 'good'));
    await limiter.admit(from('::ffff:192.0.2.1', 'good'));
    await limiter.recordFailure(from('192.0.2.1', 'good')).catch(() => undefined);
    const isAdmitted = limiter.admit(from('192.0.2.1', 'good')).then(() => true);
    expect(await Promise.race([isAdmitted, Promise.resolve('waits')])).toBe('waits');
  });

  it('forgets the oldest of very many who were accepted', async () => {
    const limiter = new LoginLimiter({ maxFailures: 1, intervalMs: 20 });
    const accepted = Array.from({ length: 10_001 }, (_, n) => from('192.0.2.1', `good ${n}`));
    for (const login of accepted) limiter.recordSuccess(login);
    await failUntilLimited(limiter, '192.0.2.1');
    const startedAt = performance.now();
    for (const login of accepted.slice(-200)) await limiter.admit(login);
    const many = performance.now() - startedAt;
    await limiter.admit(accepted[0] ?? from(''));
    expect(many).toBeLessThan(200 * 20);
    expect(performance.now() - startedAt - many).toBeGreaterThan(15);
  });

  it('does not keep the process alive', async () => {
    const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
    const before = timers();
    const limiter = new LoginLimiter({ maxFailures: 0 });
    await limiter.recordFailure(from('192.0.2.1')).catch(() => undefined);
    void limiter.admit(from('192.0.2.1'));
    expect(timers()).toBe(before);
  });
});

describe('counterOf', () => {
  it.each([
    ['192.0.2.1', '::ffff:192.0.2.1'],
    ['192.0.2.1', '::FFFF:c000:201'],
    ['192.0.2.1', '0:0:0:0:0:ffff:192.0.2.1'],
    ['2001:db8:1:2::1', '2001:db8:1:2:ffff:ffff:ffff:ffff'],
    ['2001:db8:1:2::1', '2001:0DB8:0001:0002::'],
    ['2001:db8::1', '2001:db8:0:0:1:2:3:4'],
    ['fe80::1', 'fe80::2%eth0'],
    ['::1', '::2'],
    ['unknown', undefined],
    ['unknown', '192.0.2.1:4711'],
    ['', '[2001:db8::1]:4711'],
  ])('is the same for %s and %s', (one, other) => {
    expect(counterOf(other)).toBe(counterOf(one));
  });

  it.each([
    ['192.0.2.1', '192.0.2.2'],
    ['192.0.2.1', '::192.0.2.1'],
    ['::ffff:192.0.2.1', '::ffff:192.0.2.2'],
    ['2001:db8:1:2::1', '2001:db8:1:3::1'],
    ['2001:db8::1:0:0:1', '2001:db8:1::1'],
    ['64:ff9b::192.0.2.1', '192.0.2.1'],
    ['unknown', '192.0.2.1'],
  ])('is another for %s than for %s', (one, other) => {
    expect(counterOf(other)).not.toBe(counterOf(one));
  });

  it('is one of a fixed number, and uses them evenly', () => {
    const text = fc.oneof(fc.ipV4(), fc.ipV6(), fc.string());
    fc.assert(
      fc.property(text, (address) => {
        const counter = counterOf(address);
        expect(Number.isInteger(counter) && counter >= 0 && counter < 16_384).toBe(true);
      }),
    );
    const network = (n: number) => `2001:db8:${(n >> 16).toString(16)}:${(n & 0xffff).toString(16)}::1`;
    const used = new Set(Array.from({ length: 100_000 }, (_, n) => counterOf(network(n))));
    expect(used.size).toBeGreaterThan(16_000);
    expect(used.size).toBeLessThanOrEqual(16_384);
  });
});
