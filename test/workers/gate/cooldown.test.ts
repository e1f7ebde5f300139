import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Failure } from '../../../shared/failures.js';
import { Cooldown, type Limit } from '../../../workers/gate/cooldown.js';

let cooldown: Cooldown;
let published: Limit[];
/** Whether calls of the user that the test is about are held, after each change. */
let changes: boolean[];
let user: string | undefined;

beforeEach(() => {
  vi.useFakeTimers();
  published = [];
  changes = [];
  cooldown = new Cooldown({
    onChange: () => {
      const isHeld = cooldown.leftMs(user) > 0;
      if (changes.at(-1) !== isHeld) changes.push(isHeld);
    },
    publishLimit: (limit) => published.push(limit),
  });
});
afterEach(() => {
  cooldown.dispose();
  vi.useRealTimers();
});

const limited = (retryAfterMs?: number) =>
  new Failure('provider_rate_limited', retryAfterMs === undefined ? {} : { retryAfterMs });
/** A call that ends when the test says so. */
function startCall({ isRetry = false, by = user } = {}) {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const kind = isRetry ? 'retry' : 'first';
  return { ended: cooldown.watch({ kind, user: by }, () => promise).catch((same) => same), resolve, reject };
}
const fail = (failure: Error, call: Parameters<typeof startCall>[0] = {}) => {
  const { ended, reject } = startCall(call);
  reject(failure);
  return ended;
};
const answer = (by = user) => cooldown.watch({ kind: 'first', user: by }, async () => 'answered');
const leftMs = () => cooldown.leftMs(user);
const publishedMs = () => published.map(({ holdMs }) => holdMs);

describe.each([undefined, 'M'])('calls of one user alone (%j)', (name) => {
  beforeEach(() => {
    user = name;
  });

  it.each([
    [3000, 3000],
    [3_600_000, 60_000],
  ])(
    'a 429 with a Retry-After of %d ms -> a cooldown of %d ms, a minute at most, which is published',
    async (asked, lasts) => {
      const failure = limited(asked);
      expect(await fail(failure)).toBe(failure);
      expect([leftMs(), published, changes]).toEqual([lasts, [{ holdMs: lasts, user }], [true]]);
      // It is never shortened.
      await fail(limited(1000));
      await fail(limited(0));
      expect([leftMs(), publishedMs()]).toEqual([lasts, [lasts]]);
    },
  );

  it('a 429 for the quota of a day -> a cooldown of five minutes, which is published', async () => {
    await fail(new Failure('provider_rate_limited', { retryable: false, retryAfterMs: 300_000 }));
    expect([leftMs(), publishedMs()]).toEqual([300_000, [300_000]]);
  });

  it.each([undefined, 0, 100])(
    '429s with a Retry-After of %j ms -> a pause of 250 ms that doubles up to 8 s, until a call is answered',
    async (retryAfterMs) => {
      for (let n = 0; n < 9; n += 1) await fail(limited(retryAfterMs));
      expect(publishedMs()).toEqual([250, 500, 1000, 2000, 4000, 8000]);
      expect(leftMs()).toBe(8000);
      await vi.advanceTimersByTimeAsync(8000);
      expect(await answer()).toBe('answered');
      await fail(limited(retryAfterMs));
      expect(publishedMs().at(-1)).toBe(250);
    },
  );

  it('concurrent 429s, then a retry, then the answer to an older call -> the pause doubles once', async () => {
    const calls = Array.from({ length: 20 }, () => startCall());
    const older = startCall();
    for (const call of calls) call.reject(limited());
    await Promise.all(calls.map(({ ended }) => ended));
    await fail(limited(), { isRetry: true });
    expect(publishedMs()).toEqual([250]);
    older.resolve();
    await older.ended;
    await fail(limited());
    expect(publishedMs()).toEqual([250, 500]);
  });

  it('any other failure -> no cooldown', async () => {
    for (const code of ['provider_error', 'provider_timeout', 'provider_rejected'] as const)
      await fail(new Failure(code, { retryAfterMs: 5000 }));
    await fail(new Error('x'));
    expect([leftMs(), changes]).toEqual([0, []]);
  });

  it('a 429 elsewhere -> is not published, lasts five minutes at most, ends by itself, and can begin again', () => {
    cooldown.extend({ holdMs: 1e9, user });
    expect(leftMs()).toBe(300_000);
    vi.advanceTimersByTime(300_000);
    expect(leftMs()).toBe(0);
    cooldown.extend({ holdMs: 20, user });
    vi.advanceTimersByTime(20);
    expect([changes, published]).toEqual([[true, false, true, false], []]);
  });

  it('the end, or a 429 elsewhere, after it was disposed of -> is not reported', () => {
    cooldown.extend({ holdMs: 20, user });
    cooldown.dispose();
    vi.advanceTimersByTime(20);
    cooldown.extend({ holdMs: 20, user });
    expect([leftMs(), changes]).toEqual([0, [true]]);
  });
});

describe('calls of several users', () => {
  /**
   * Steps: 'M 30000' is a 429 of a call of M with this Retry-After, 'far M 30000' one of another worker; 'V answered' a
   * call of V from its beginning; '250 ms' a pause. `-` is a job without a user. The end says how long each is held.
   */
  async function take(step: string): Promise<void> {
    const [, far, name = '', how] = /^(far )?([MVW-]) (\d+|answered)$/.exec(step) ?? [];
    const by = name === '-' ? undefined : name;
    if (how === undefined) await vi.advanceTimersByTimeAsync(Number.parseInt(step, 10));
    else if (far) cooldown.extend({ holdMs: Number(how), user: by });
    else if (how === 'answered') await answer(by);
    else await fail(limited(Number(how)), { by });
  }
  const doubledByM = Array.from({ length: 6 }, () => 'M 0, 8000 ms').join(', ');

  beforeEach(() => {
    user = undefined;
  });

  it.each([
    'M 30000 -> M 30000, V 250, - 250',
    'M 30000, 250 ms -> M 29750, V 0, - 0',
    // Once, until a call is answered.
    'M 0, 250 ms, M 0, 500 ms, M 0 -> M 1000, V 0',
    'M 0, 250 ms, M answered, M 0 -> M 250, V 250',
    'M 30000, 250 ms, V answered -> M 0, V 0',
    'M 30000, 250 ms, V answered, M 30000 -> M 30000, V 250',
    'M 30000, 250 ms, V 2000 -> M 29750, V 2000, W 2000, - 2000',
    'M 30000, 250 ms, V 2000, 2000 ms, W answered -> M 0, V 0',
    // One user does not renew the hold of all, nor make it longer; two do, with a pause that doubles.
    'M 0, 250 ms, V 0, 250 ms, M 60000 -> M 60000, V 250',
    'M 0, 250 ms, V 0, M 60000 -> M 60000, V 250',
    'M 60000, 250 ms, V 2000, 2000 ms, M 60000 -> M 60000, V 0',
    'M 0, 250 ms, V 0, 250 ms, M 0, 500 ms, V 0 -> M 500, V 500',
    'M 0, 250 ms, V 0, 250 ms, M 0, 500 ms, V 0, 500 ms, M 0, 1000 ms, V 0 -> M 1000, V 1000',
    'M 0, 250 ms, V 0, 250 ms, V answered, M 0, 250 ms, V 0 -> M 250, V 250',
    'M 0, 250 ms, V 0, 250 ms, V answered, M 9000 -> M 9000, V 250',
    `${doubledByM}, V 0 -> M 250, V 250`,
    'M 30000, - 2000 -> M 30000, V 2000',
    '- 2000, 2000 ms, M 3000 -> M 3000, V 250',
    '- 0, 250 ms, M 0, 500 ms, V 0 -> M 500, V 500',
    'far M 30000 -> M 30000, V 250',
    'far M 30000, 250 ms, V answered -> M 0',
    'far M 30000, far V 2000 -> M 30000, V 2000, W 2000',
    'far - 30000 -> M 30000, V 30000, - 30000',
    'far - 2000, far M 30000 -> M 30000, V 2000',
  ])('%s', async (row) => {
    const [steps = '', end = ''] = row.split(' -> ');
    for (const step of steps.split(', ')) await take(step);
    const held = end.split(', ').map((each) => {
      const name = each.charAt(0);
      return `${name} ${cooldown.leftMs(name === '-' ? undefined : name)}`;
    });
    expect(held.join(', ')).toBe(end);
  });

  it('an answer to a call that began before the user was held -> does not free that user', async () => {
    const older = startCall({ by: 'V' });
    await take('far M 30000');
    older.resolve();
    await older.ended;
    expect(cooldown.leftMs('M')).toBe(30_000);
  });

  it('the first 429, and one of another user -> one user is published, then none', async () => {
    for (const step of ['M 30000', '250 ms', 'V 2000']) await take(step);
    expect(published).toEqual([
      { holdMs: 30_000, user: 'M' },
      { holdMs: 2000, user: undefined },
    ]);
  });

  it('one user is held for longer than the others -> both ends are described', async () => {
    await take('M 30000');
    const both = [
      { user: undefined, holdMs: 250 },
      { user: 'M', holdMs: 30_000 },
    ];
    expect([cooldown.describe(), cooldown.isAlone('M'), cooldown.isAlone('V')]).toEqual([both, true, false]);
    await take('30000 ms');
    expect([cooldown.describe(), cooldown.isAlone('M')]).toEqual([[], false]);
  });
});
