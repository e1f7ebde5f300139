import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { clientOf, createCounters, LoginLimiter } from '../../../api/access/login-limiter.js';
import { Failure } from '../../../shared/failures.js';
import { heldDelays } from '../../support/held-delays.js';

afterEach(() => void vi.useRealTimers());

const from = (address: string, secret = 'y', name = 'x') => ({ address, name, secret });
const limited = expect.objectContaining({ code: 'rate_limited' });

/** Counts failures until one is too many; how many were not. */
async function failUntilLimited(limiter: LoginLimiter, address: string) {
  for (let count = 0; ; count++) {
    const failure = await limiter.recordFailure(from(address)).catch((error: Failure) => error);
    if (failure) return { count, failure };
  }
}

/** A limiter that has had one failure too many from 192.0.2.1, and whose attempts wait until the test lets them. */
async function startLimited() {
  const delays = heldDelays();
  const limiter = new LoginLimiter({ maxFailures: 1, delay: delays.delay });
  await failUntilLimited(limiter, '192.0.2.1');
  return { limiter, delays };
}

type Login = Parameters<LoginLimiter['admit']>[0];

/** Whether this attempt alone waits, until it is let in. */
async function waits({ limiter, delays }: Awaited<ReturnType<typeof startLimited>>, login: Login) {
  const admitted = limiter.admit(login);
  await setImmediate();
  const { waiting } = delays;
  delays.passAll();
  await admitted;
  return waiting === 1;
}

/** How many of these attempts, made at once, are admitted in the end. */
async function countAdmitted(logins: Login[]) {
  const { limiter, delays } = await startLimited();
  const ends = Promise.allSettled(logins.map((login) => limiter.admit(login)));
  await setImmediate();
  delays.passAll();
  return (await ends).filter(({ status }) => status === 'fulfilled').length;
}

describe('LoginLimiter', () => {
  it('30 failures of a client within a minute -> none is limited, and the next is told how long to wait', async () => {
    vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'clearTimeout'] });
    const limiter = new LoginLimiter();
    const { count, failure } = await failUntilLimited(limiter, '192.0.2.1');
    expect(count).toBe(30);
    expect(failure).toBeInstanceOf(Failure);
    expect(failure).toMatchObject({ code: 'rate_limited', status: 429, facts: { retryAfterMs: 60_000 } });
    await expect(limiter.recordFailure(from('192.0.2.2'))).resolves.toBeUndefined();
    vi.advanceTimersByTime(59_999);
    await expect(limiter.recordFailure(from('192.0.2.1'))).rejects.toEqual(limited);
    vi.advanceTimersByTime(1);
    await limiter.recordFailure(from('192.0.2.1'));
  });

  it('attempts from an address with too many failures -> wait one after another, for eight intervals at most', async () => {
    const { limiter, delays } = await startLimited();
    const guesses = Array.from({ length: 64 }, (_, n) => limiter.admit(from('192.0.2.1', `guess ${n}`)));
    await setImmediate();
    expect(delays.waitsMs).toEqual(guesses.map((_, n) => Math.min(n + 1, 8) * 1000));
    delays.passAll();
    await Promise.all(guesses);
  });

  it.each([
    ['one name', 64, (n: number) => from('192.0.2.1', `guess ${n}`)],
    ['different names', 1000, (n: number) => from('192.0.2.1', 'y', `name ${n}`)],
  ])('many guesses from one address with %s -> %i wait, the others are refused', async (_, most, guess) => {
    expect(await countAdmitted(Array.from({ length: 3000 }, (__, n) => guess(n)))).toBe(most);
  });

  it('many guesses with other names, or from other addresses -> a name still has a place', async () => {
    const { limiter, delays } = await startLimited();
    const guesses = Promise.allSettled(
      [
        ...Array.from({ length: 300 }, (_, n) => from('192.0.2.1', 'y', `name ${n % 10}`)),
        ...Array.from({ length: 200 }, (_, n) => from('192.0.2.2', `guess ${n}`, 'right')),
      ].map((guess) => limiter.admit(guess)),
    );
    const admitted = [from('192.0.2.1', 'secret', 'right'), { address: '192.0.2.1', secret: 'a token' }];
    const rights = admitted.map((login) => limiter.admit(login));
    await setImmediate();
    delays.passAll();
    await Promise.all([...rights, guesses]);
  });

  it('a client that leaves while it waits -> its place is free at once', async () => {
    const { limiter } = await startLimited();
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

  it('too many failures with a name, from whichever addresses -> guesses at that name alone wait', async () => {
    const delays = heldDelays();
    const limiter = new LoginLimiter({ maxFailures: 2, delay: delays.delay });
    for (const n of [1, 2]) await limiter.recordFailure(from(`192.0.2.${n}`, 'y', 'known'));
    // One of 16,384 names shares its counter with the first.
    const others = ['another', 'a second', 'a third'].map((name) => from('192.0.2.3', 'z', name));
    await Promise.any(others.map((login) => limiter.admit(login)));
    delays.passAll();
    expect(await waits({ limiter, delays }, from('192.0.2.3', 'z', 'known'))).toBe(true);
  });

  it('what was accepted from the address -> does not wait, until it fails', async () => {
    const { limiter, delays } = await startLimited();
    limiter.recordSuccess(from('192.0.2.1', 'good'));
    await limiter.admit(from('192.0.2.1', 'good'));
    await limiter.admit(from('::ffff:192.0.2.1', 'good'));
    expect(delays.waitsMs).toEqual([]);
    await limiter.recordFailure(from('192.0.2.1', 'good')).catch(() => undefined);
    expect(await waits({ limiter, delays }, from('192.0.2.1', 'good'))).toBe(true);
  });

  it('more were accepted than are remembered -> the oldest waits again, and no other', async () => {
    const { limiter, delays } = await startLimited();
    const accepted = Array.from({ length: 10_001 }, (_, n) => from('192.0.2.1', `good ${n}`));
    for (const login of accepted) limiter.recordSuccess(login);
    for (const login of accepted.slice(1)) await limiter.admit(login);
    expect(delays.waitsMs).toEqual([]);
    expect(await waits({ limiter, delays }, accepted[0] ?? from(''))).toBe(true);
  });

  it('attempts that wait -> do not keep the process alive', async () => {
    // Many, because other files of this process may begin or end a timer meanwhile.
    const addresses = Array.from({ length: 100 }, (_, n) => `192.0.2.${n}`);
    const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
    const before = timers();
    const limiter = new LoginLimiter({ maxFailures: 0 });
    for (const address of addresses) {
      await limiter.recordFailure(from(address)).catch(() => undefined);
      void limiter.admit(from(address));
    }
    await setImmediate();
    expect(timers()).toBeLessThan(before + addresses.length / 2);
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
  ])('%s and %s -> one counter', (one, other) => {
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
  ])('%s and %s -> two counters', (one, other) => {
    expect(counterOf(other)).not.toBe(counterOf(one));
  });

  it('another process -> another counter, so that nobody can choose whose to share', () => {
    const another = createCounters();
    const differ = Array.from({ length: 10 }, (_, n) => numberOf(`${n}`) !== another(`${n}`));
    expect(differ).toContain(true);
  });

  it('whatever the address -> one of a fixed number of counters, which are used evenly', () => {
    const text = fc.oneof(fc.ipV4(), fc.ipV6(), fc.string());
    fc.assert(
      fc.property(text, (address) => {
        const counter = counterOf(address);
        expect(Number.isInteger(counter) && counter >= 0 && counter < 16_384).toBe(true);
      }),
    );
    const network = (n: number) => `2001:db8:${(n >> 16).toString(16)}:${(n & 0xffff).toString(16)}::1`;
    const used = new Set(Array.from({ length: 70_000 }, (_, n) => counterOf(network(n))));
    expect(used.size).toBeGreaterThan(15_500);
    expect(used.size).toBeLessThanOrEqual(16_384);
  });
});
