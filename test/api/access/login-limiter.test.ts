import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { LoginLimiter } from '../../../api/access/login-limiter.js';
import { clientOf, createCounters } from '../../../api/access/rate-limit.js';
import { Failure } from '../../../shared/failures.js';
import { patience } from '../../support/patience.js';

const from = (address: string, secret = 'y', name = 'x') => ({ address, name, secret });
const limited = expect.objectContaining({ code: 'rate_limited' });

/** Counts failures until one is too many; how many were not. */
async function failUntilLimited(limiter: LoginLimiter, address: string) {
  for (let count = 0; ; count++) {
    const failure = await limiter.recordFailure(from(address)).catch((error: Failure) => error);
    if (failure) return { count, failure };
  }
}

describe('LoginLimiter', () => {
  it('allows 30 failures of each client within a minute, and then says how long to wait', async () => {
    const limiter = new LoginLimiter();
    const { count, failure } = await failUntilLimited(limiter, '192.0.2.1');
    expect(count).toBe(30);
    expect(failure).toBeInstanceOf(Failure);
    expect(failure).toMatchObject({ code: 'rate_limited', status: 429 });
    expect(failure.facts.retryAfterMs).toBeGreaterThan(50_000);
    expect(failure.facts.retryAfterMs).toBeLessThanOrEqual(60_000);
    await expect(limiter.recordFailure(from('192.0.2.2'))).resolves.toBeUndefined();
    await expect(limiter.recordFailure(from('192.0.2.1'))).rejects.toEqual(limited);
  });

  it('begins again when the window is over, however many failures came in it', async () => {
    const limiter = new LoginLimiter({ maxFailures: 2, windowSeconds: 0.05 });
    await failUntilLimited(limiter, '192.0.2.1');
    await vi.waitFor(() => limiter.recordFailure(from('192.0.2.1')), { ...patience, interval: 5 });
  });

  it('admits one attempt after another from an address with too many failures, and all within eight intervals', async () => {
    const limiter = new LoginLimiter({ maxFailures: 1, intervalMs: 30 });
    await failUntilLimited(limiter, '192.0.2.1');
    const startedAt = performance.now();
    const ends = await Promise.all(
      Array.from({ length: 64 }, (_, n) =>
        limiter.admit(from('192.0.2.1', `guess ${n}`)).then(() => performance.now() - startedAt),
      ),
    );
    for (const [n, ms] of ends.entries()) expect(ms).toBeGreaterThan(Math.min(n + 1, 8) * 30 - 5);
  });

  it('bounds how many guesses wait with one name from one address', async () => {
    const limiter = new LoginLimiter({ maxFailures: 1, intervalMs: 30 });
    await failUntilLimited(limiter, '192.0.2.1');
    const guesses = Array.from({ length: 200 }, (_, n) => limiter.admit(from('192.0.2.1', `guess ${n}`)));
    const ends = await Promise.allSettled(guesses);
    expect(ends.filter(({ status }) => status === 'fulfilled')).toHaveLength(64);
  });

  it('keeps a place for a name, whatever is guessed from its address with others, or with it from other addresses (finding S5)', async () => {
    const limiter = new LoginLimiter({ maxFailures: 1, intervalMs: 30 });
    await failUntilLimited(limiter, '192.0.2.1');
    // Some are refused while the others wait.
    const guesses = Promise.allSettled(
      [
        ...Array.from({ length: 300 }, (_, n) => from('192.0.2.1', 'y', `name ${n % 10}`)),
        ...Array.from({ length: 200 }, (_, n) => from('192.0.2.2', `guess ${n}`, 'right')),
      ].map((guess) => limiter.admit(guess)),
    );
    await limiter.admit(from('192.0.2.1', 'secret', 'right'));
    await limiter.admit({ address: '192.0.2.1', secret: 'a token' });
    await guesses;
  });

  it('gives the place of a client that has left to the next at once (finding S5)', async () => {
    const limiter = new LoginLimiter({ maxFailures: 1, intervalMs: 60_000 });
    await failUntilLimited(limiter, '192.0.2.1');
    const responses = Array.from({ length: 64 }, () => new ServerResponse(new IncomingMessage(new Socket())));
    const admit = (response: ServerResponse) => limiter.admit({ ...from('192.0.2.1', 'wrong'), response });
    for (let round = 0; round < 3; round += 1) {
      const guesses = responses.map(admit);
      await expect(limiter.admit(from('192.0.2.1'))).rejects.toEqual(limited);
      for (const response of responses) response.emit('close');
      for (const guess of guesses) await expect(guess).rejects.toEqual(limited);
      expect(responses.map((response) => response.listenerCount('close'))).not.toContain(1);
    }
  });

  it('slows guesses at a name down, from whichever addresses they come', async () => {
    const limiter = new LoginLimiter({ maxFailures: 2, intervalMs: 3_600_000 });
    for (const n of [1, 2]) await limiter.recordFailure(from(`192.0.2.${n}`, 'y', 'known'));
    const isAdmitted = limiter.admit(from('192.0.2.3', 'z', 'known')).then(() => true);
    expect(
      await Promise.race([isAdmitted, limiter.admit(from('192.0.2.3', 'z', 'another'))]),
    ).toBeUndefined();
  });

  it('bounds how many wait from one address', async () => {
    const limiter = new LoginLimiter({ maxFailures: 0, intervalMs: 5 });
    await limiter.recordFailure(from('192.0.2.1')).catch(() => undefined);
    const names = Array.from({ length: 3000 }, (_, n) => from('192.0.2.1', 'y', `name ${n}`));
    const ends = await Promise.allSettled(names.map((login) => limiter.admit(login)));
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

const numberOf = createCounters();
const counterOf = (address: string | undefined) => numberOf(clientOf(address));

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

  it('is another one in another process, so that nobody can choose whose to share', () => {
    const another = createCounters();
    const differ = Array.from({ length: 10 }, (_, n) => numberOf(`${n}`) !== another(`${n}`));
    expect(differ).toContain(true);
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
