import fc from 'fast-check';
import { LRUCache } from 'lru-cache';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Failure, type FailureCode } from '../../../shared/failures.js';
import { Breakers, type OwnBreaker, type Rule } from '../../../workers/gate/breakers.js';
import { accountRule, failuresRule, limitsRule } from '../../../workers/gate/evidence.js';
import { Cancelled, CutForFallback, LockLost } from '../../../workers/gate/gated-call.js';
import { ProviderCallError, unusableAnswer } from '../../../workers/providers/errors/error-classification.js';

const resetMs = 100;
let timeoutMs: number;
let own: LRUCache<string, OwnBreaker>;
let breakers: Breakers;
let changes: string[];

/** As the gate opens the three that a call passes. */
function open(kind: Rule['kind']): void {
  const times = () => ({ timeoutMs, resetMs });
  const rules = { account: accountRule, failures: failuresRule, limits: limitsRule };
  changes = [];
  own = new LRUCache<string, OwnBreaker>({ max: 500, dispose: ({ breaker }) => breaker.forget() });
  breakers = new Breakers({
    ...{ rule: rules[kind](times), model: 'm', own },
    onChange: (state, user = 'all') => changes.push(`${state} for ${user}`),
  });
}

function close(): void {
  breakers.forget();
  own.clear();
}

beforeEach(() => {
  vi.useFakeTimers();
  timeoutMs = 1000;
  open('failures');
});
afterEach(() => {
  close();
  vi.useRealTimers();
});

/** A call that ends when the test says so; undefined if it is refused. */
function begin(user: string | undefined, progress = { isAlive: false, hasBegun: false }) {
  if (breakers.leftMs(user) > 0) return undefined;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const life = Promise.withResolvers<void>();
  const ended = breakers.fire({ user, progress }, life.promise, () => promise).catch(() => undefined);
  const end = async (error?: Error) => {
    if (error) reject(error);
    else resolve();
    await ended;
    await vi.advanceTimersByTimeAsync(0);
  };
  const live = async () => {
    progress.isAlive = true;
    life.resolve();
    await vi.advanceTimersByTimeAsync(0);
  };
  return { end, live };
}

const called = (cause: ProviderCallError, code: FailureCode = 'provider_rejected') =>
  new Failure(code, { cause });
const failedBy = (own: object, status: number, code?: FailureCode) =>
  called(Object.assign(new ProviderCallError('Error', status), own), code);
/** How calls end, beside the codes of failures. */
const ends: Record<string, Error | undefined> = {
  answered: undefined,
  failed: new Failure('provider_error'),
  'timed out': new Failure('provider_timeout'),
  cut: new Cancelled(),
  'lost its lock': new LockLost(),
  'cut for the fallback': new Failure('provider_timeout', { cause: new CutForFallback() }),
  'failed for good': new Failure('provider_error', { retryable: false }),
  'no JSON': unusableAnswer('malformed_json'),
  'an unknown tool': unusableAnswer('unknown_tool'),
  '401': called(new ProviderCallError('Error', 401)),
  '401 for the model': failedBy({ namesModel: true }, 401),
  'out of credit': called(new ProviderCallError('Error', 429, 'insufficient_quota'), 'provider_error'),
  '402': failedBy({ seemsOutOfCredit: true }, 402, 'provider_error'),
  '404': called(new ProviderCallError('Error', 404)),
  unreachable: called(new ProviderCallError('Error', undefined, 'ECONNREFUSED'), 'provider_error'),
  'limited for a day': new Failure('provider_rate_limited', { retryable: false, retryAfterMs: 300_000 }),
};
const endOf = (how: string): Error | undefined => {
  const [, seconds] = /^limited (\d+)$/.exec(how) ?? [];
  if (seconds) return new Failure('provider_rate_limited', { retryAfterMs: Number(seconds) });
  return how in ends ? ends[how] : new Failure(how as FailureCode);
};

/**
 * Makes the steps, one call after another: '20 of M timed out after 2900' are twenty of this user that end so, each
 * after 2.9 s; one that is refused is not made. 'M is refused' says so, and '100 ms' is a pause.
 */
async function make(steps: string): Promise<void> {
  for (const step of steps.split('; ')) {
    const [name, does] = step.split(' ');
    if (does === 'is') expect([step, begin(name === '?' ? undefined : name)]).toEqual([step, undefined]);
    else if (does === 'ms') await vi.advanceTimersByTimeAsync(Number(name));
    else await makeCalls(step);
  }
}

async function makeCalls(step: string): Promise<void> {
  const [, count, user, how = '', ms = how === 'cut' ? 1000 : 0] =
    /^(\d+) of (\S+) (.+?)(?: after (\d+))?(?:, alive)?$/.exec(step) ?? [];
  const isAlive = step.endsWith(', alive');
  for (let n = 0; n < Number(count); n += 1) {
    const call = begin(user === '?' ? undefined : user, { isAlive, hasBegun: false });
    await vi.advanceTimersByTimeAsync(Number(ms));
    await call?.end(endOf(how));
  }
}

/** Such as 'open for M: timeout', those of all first; 'closed'. */
const state = () =>
  [{ breaker: breakers.all, user: 'all' }, ...[...own.values()].reverse()]
    .filter(({ breaker }) => breaker.state !== 'closed')
    .map(({ breaker: { state, reason }, user }) => `${state} for ${user}: ${reason}`)
    .join(', ') || 'closed';

/** With one user alone, and with calls of unknown users, which count for all at once: the same. */
describe.each<[calls: string, user: string | undefined]>([
  ['calls of one user alone', 'M'],
  ['calls of users unknown', undefined],
])('%s', (_, user) => {
  const name = user ?? '?';
  const opened = `open for ${user ?? 'all'}`;
  const isRefused = () => breakers.leftMs(user) > 0;
  const refusals = ['provider_rejected', 'limited 0', 'content_blocked', 'no JSON', 'an unknown tool'];
  const nothing = ['timeout', 'internal', '401', 'provider_unavailable', 'failed for good', 'lost its lock'];
  it.each<[before: string[], last?: string]>([
    // More than half of five or more.
    [['4 failed'], '1 failed'],
    [['5 answered', '5 failed'], '1 failed'],
    // The tenth in a row, however many were good before.
    [['200 answered', '9 failed', '1 answered', '9 failed'], '1 failed'],
    // A refusal is an answer, and ends the row.
    ...refusals.map((end): [string[], string] => [['4 failed', `50 ${end}`, '9 failed'], '1 failed']),
    // These are neither held against the provider, nor for it.
    ...[...nothing, 'timed out, alive'].map((end): [string[], string] => [
      ['4 failed', `50 ${end}`, '5 failed'],
      '1 failed',
    ]),
    [['4 failed', '10 cut after 1000, alive', '5 failed'], '1 failed'],
    // An end by the caller counts after three times the usual time, and 0.9 s at least.
    ...['timeout', 'cut', 'cut for the fallback'].map((end): [string[], string] => [
      ['1 answered after 1000', `20 ${end} after 2900`],
      `12 ${end} after 3100`,
    ]),
    [['1 answered after 10', '20 timeout after 850'], '12 timeout after 950'],
    [['4 timed out after 1000'], '1 timed out after 1000'],
    [['4 401 for the model'], '1 401 for the model'],
  ])('%j leave the breaker closed -> %s open it', async (before, last) => {
    const of = (calls: string) => calls.replace(/^\d+/, `$& of ${name}`);
    for (const calls of before) await make(of(calls));
    expect(changes).toEqual([]);
    if (last === undefined) return;
    await make(of(last));
    expect(changes[0]).toBe(opened);
  });

  it('good, bad and other ends in any order -> the breaker counts as one would by hand', async () => {
    const kinds = ['answered', 'answered', 'failed', 'failed', 'failed', 'internal', `${resetMs} ms`];
    const check = async (taken: string[]) => {
      open('failures');
      const count = countByHand();
      for (const step of taken) {
        await make(step.endsWith('ms') ? step : `1 of ${name} ${step}`);
        const { state = 'closed' } = (user ? own.values().next().value?.breaker : breakers.all) ?? {};
        expect(state).toBe(count(step));
      }
      close();
    };
    const steps = fc.array(fc.constantFrom(...kinds), { maxLength: 60 });
    await fc.assert(fc.asyncProperty(steps, check), { numRuns: 100 });
  });

  it.each([
    ['answered', 'closed'],
    ['provider_rejected', 'closed'],
    ['failed', 'open'],
    ['timed out', 'open'],
    ['cut after 10', 'open'],
    ['lost its lock', 'open'],
  ])('a probe %s -> no other call meanwhile, then it is %s', async (how, end) => {
    await make(`5 of ${name} failed; ${name} is refused; ${resetMs} ms`);
    const probe = begin(user);
    expect(begin(user)).toBeUndefined();
    await probe?.end(endOf(how.replace(/ after.*/, '')));
    expect(changes.map((change) => change.split(' ')[0])).toEqual(['open', 'half-open', end]);
    expect(state().split(' ')[0]).toBe(end);
    expect(isRefused()).toBe(end === 'open');
  });

  it('a probe is silent -> it has failed after a pause, and its late answer closes the breaker', async () => {
    await make(`5 of ${name} failed; ${resetMs} ms`);
    const probe = begin(user);
    await make('99 ms');
    expect(state()).toContain('half-open');
    await make('1 ms');
    expect(state()).toBe(`${opened}: timeout`);
    await probe?.end();
    expect(state()).toBe('closed');
  });

  it('a probe shows life -> closes at once, and what becomes of it later says nothing', async () => {
    await make(`5 of ${name} failed; ${resetMs} ms`);
    const probe = begin(user);
    await probe?.live();
    expect(state()).toBe('closed');
    await make(`4 of ${name} failed`);
    await probe?.end(ends.failed);
    expect(state()).toBe('closed');
  });

  it('old calls that end late -> are not taken for the probe, nor counted while it is open', async () => {
    const old = [begin(user), begin(user), begin(user)];
    await make(`8 of ${name} failed`);
    await old[0]?.end();
    expect(state()).toContain('open');
    await make(`${resetMs} ms`);
    await old[1]?.end();
    await old[2]?.end(ends.failed);
    const probe = begin(user);
    expect([state().split(' ')[0], begin(user)]).toEqual(['half-open', undefined]);
    await probe?.end();
    expect(state()).toBe('closed');
  });

  // A window that is shorter than a call, or than five of them at this pace, would never be full.
  it.each([
    [1, 45_000],
    [0.3, 45_000],
    [0.3, 1000],
  ])('%d calls/s that hang, with a time-out of %d ms -> opens', async (perSecond, maxMs) => {
    timeoutMs = maxMs;
    open('failures');
    const hang = () => {
      const call = begin(user);
      setTimeout(() => void call?.end(ends['timed out']), maxMs);
    };
    const pace = setInterval(hang, 1000 / perSecond);
    // Those that run count as calls, too: ten in a row are needed at a quick pace.
    await vi.advanceTimersByTimeAsync(11 * (1000 / perSecond) + maxMs + 1000);
    clearInterval(pace);
    expect(changes).toContain(opened);
  });
});

/** The state of one breaker after each step: more than half of five or more, or ten in a row; a probe after a pause. */
function countByHand(): (step: string) => string {
  let [state, samples] = ['closed', [] as string[]];
  const isFailed = (sample: string) => sample === 'failed';
  const isBad = () =>
    samples
      .filter((sample) => sample !== 'internal')
      .slice(-10)
      .filter(isFailed).length === 10 ||
    (samples.length >= 5 && 2 * samples.filter(isFailed).length > samples.length);
  const take = (step: string) => {
    samples.push(step);
    if (state === 'closed') return isFailed(step) && isBad() ? 'open' : 'closed';
    samples = [];
    return step === 'answered' ? 'closed' : 'open';
  };
  return (step) => {
    if (!step.endsWith('ms')) state = state === 'open' ? 'open' : take(step);
    else if (state === 'open') state = 'half-open';
    return state;
  };
}

const inTurn = (count: number, how: string) => `1 of M ${how}; 1 of V ${how}; `.repeat(count);

describe('calls of several users', () => {
  it.each([
    // A failure counts for its user.
    ['5 of M failed; M is refused; 1 of V answered', 'open for M: provider_error'],
    ['5 of M timed out; M is refused', 'open for M: provider_timeout'],
    ['5 of M cut; M is refused', 'open for M: timeout'],
    [
      '5 of M failed; 1 of V answered; 5 of H failed; 1 of V answered',
      'open for M: provider_error, open for H: provider_error',
    ],
    // For all as well if the one before was another user's, with no answer in between.
    [`${inTurn(3, 'failed')}V is refused`, 'open for all: provider_error'],
    [`${inTurn(3, 'timed out')}H is refused`, 'open for all: provider_timeout'],
    [`${inTurn(2, 'failed')}1 of H answered`, 'closed'],
    [`${'1 of M failed; 1 of V answered; '.repeat(4)}1 of V failed`, 'closed'],
    // A refusal is an answer, too.
    [
      `${'1 of M failed; 1 of H provider_rejected; 1 of V failed; 1 of H content_blocked; '.repeat(4)}1 of H answered`,
      'closed',
    ],
    // One who is refused already takes no part in it.
    [
      '5 of M failed; 1 of V failed; 4 of V failed; V is refused',
      'open for M: provider_error, open for V: provider_error',
    ],
    [
      '1 of V failed; 5 of M failed; 4 of V failed; 1 of H answered',
      'open for M: provider_error, open for V: provider_error',
    ],
  ])('%s -> %s', async (steps, end) => {
    await make(steps);
    expect(state()).toBe(end);
  });

  it.each([
    // Whose probe fails is refused alone, and the next call of another user decides for all.
    ['1 of M failed; M is refused', 'half-open for all: provider_error, open for M: provider_error'],
    ['1 of M failed; 1 of V answered', 'open for M: provider_error'],
    ['1 of M cut after 10; 1 of V answered', 'open for M: provider_error'],
    [
      '1 of M failed; 1 of V failed; H is refused',
      'open for all: provider_error, open for M: provider_error',
    ],
    // That of the round before shows nothing in this one.
    [
      '1 of V failed; 1 of M failed; 100 ms; 1 of M failed; M is refused; 1 of H answered',
      'half-open for V: provider_error, open for M: provider_error',
    ],
    // One user alone probes once per pause.
    [`${'1 of M failed; M is refused; 100 ms; '.repeat(3)}1 of M answered`, 'closed'],
  ])('the breaker of all is half-open; %s -> %s', async (steps, end) => {
    await make(`${inTurn(3, 'failed')}100 ms; ${steps}`);
    expect(state()).toBe(end);
  });

  it('one user’s failures, with or without answers of others -> never count for all', async () => {
    const steps = fc.array(fc.constantFrom('failed', 'cut', 'timed out', 'V answered', 'V 404', '100 ms'), {
      maxLength: 60,
    });
    const check = async (taken: string[]) => {
      open('failures');
      for (const step of taken)
        await make(step.endsWith('ms') ? step : `1 of ${step.startsWith('V') ? step : `M ${step}`}`);
      expect([breakers.all.state, begin('V')]).toEqual(['closed', expect.anything()]);
      close();
    };
    await fc.assert(fc.asyncProperty(steps, check), { numRuns: 100 });
  });

  it('200 users at a provider that is down -> five or six calls, then two a pause', async () => {
    let asked = 0;
    for (let n = 0; n < 200; n += 1) {
      const call = begin(`u${n}`);
      if (call) asked += 1;
      await call?.end(ends.failed);
    }
    expect(asked).toBeLessThanOrEqual(6);
    asked = 0;
    for (let pause = 0; pause < 10; pause += 1) {
      await make(`${resetMs} ms`);
      for (let n = 0; n < 20; n += 1) {
        const call = begin(`p${pause}-${n}`);
        if (call) asked += 1;
        await call?.end(ends.failed);
      }
    }
    expect(asked).toBe(20);
  });

  it('calls that take long while quick ones are answered -> their callers’ ends say nothing', async () => {
    const long = ['a', 'b', 'c', 'd', 'e', 'f'].map((user) => begin(user));
    await make('5000 ms; 1 of V answered');
    for (const call of long) await call?.end(ends.cut);
    expect(state()).toBe('closed');
  });

  it('502 users -> the breaker of the one who called longest ago is forgotten', async () => {
    await make('5 of M failed');
    for (let n = 0; n < 499; n += 1) await make(`1 of u${n} answered`);
    expect(breakers.leftMs('M')).toBe(resetMs);
    await make('1 of V answered');
    expect(breakers.leftMs('M')).toBe(0);
  });
});

describe('spent credit at a model', () => {
  it('by its code -> at once for all, for 31 pauses', async () => {
    await make(
      '100 of V answered; 1 of M out of credit; V is refused; 3099 ms; V is refused; 1 ms; 1 of V answered',
    );
    expect(state()).toBe('half-open for M: credit');
  });
});

describe('the account', () => {
  beforeEach(() => open('account'));

  it.each([
    ['5 of M 401; M is refused', 'open for M: credentials'],
    ['5 of M 401; 1 of V 404; 100 ms; 1 of M 401', 'open for M: credentials'],
    ['5 of M 401; 100 ms; 1 of M 404', 'closed'],
    [`${inTurn(3, '401')}V is refused`, 'open for all: credentials'],
    // An odd name is in any text: such an answer is held neither against the account, nor for it.
    ['9 of M 401 for the model; 1 of M 401', 'closed'],
    // No user can have brought this about.
    ['5 of M unreachable; V is refused', 'open for all: unreachable, open for M: unreachable'],
    ['4 of M unreachable; 6 of M failed; 6 of M timed out', 'closed'],
    [
      '5 of M unreachable; 100 ms; 1 of V unreachable; 1 of H answered',
      'open for all: unreachable, half-open for M: unreachable',
    ],
    ['5 of M 401; 100 ms; 1 of M unreachable', 'open for M: unreachable'],
    ['5 of M unreachable; 100 ms; 1 of M 404; 1 of V unreachable', 'closed'],
    // Spent credit by its code: its user at once for thirty pauses, all once another user's call says so, too.
    ['1 of M out of credit; M is refused; 1 of V answered', 'open for M: credit'],
    [
      '1 of M out of credit; 2999 ms; M is refused; 1 ms; 1 of M out of credit; M is refused',
      'open for M: credit',
    ],
    [
      '1 of M out of credit; 1 of V out of credit; H is refused; 2999 ms; H is refused; 1 ms; 1 of H answered',
      'half-open for M: credit, half-open for V: credit',
    ],
    [
      '1 of M out of credit; 1 of V answered; 1 of H out of credit; 1 of V answered',
      'open for M: credit, open for H: credit',
    ],
    // A request may have been too costly for what is left.
    ['5 of M 402; M is refused; 1 of V answered', 'open for M: credit'],
    ['5 of M 402; 100 ms; 1 of M 402; 99 ms; M is refused; 1 ms; 1 of M answered', 'closed'],
    [`${inTurn(3, '402')}V is refused`, 'open for all: credit'],
  ])('%s -> %s', async (steps, end) => {
    await make(steps);
    expect(state()).toBe(end);
  });

  it('a probe is silent -> the account is reached after a pause', async () => {
    await make('5 of M unreachable; 100 ms');
    begin('M');
    await make('100 ms');
    expect(state()).toBe('closed');
  });
});

describe('rate limits', () => {
  beforeEach(() => open('limits'));

  const doubled = 'M 250; M 500; M 1000; M 2000; M 4000; M 8000; M 8000'
    .split('; ')
    .map((pause) => `1 of M limited 0; ${Number(pause.slice(2)) - 1} ms; M is refused; 1 ms`)
    .join('; ');
  it.each([
    // One 429 is enough, for as long as it says, a minute at most, five of a day's.
    ['1 of M limited 3000 -> M 3000, V 0'],
    ['1 of M limited 3600000 -> M 60000'],
    ['1 of M limited for a day -> M 300000'],
    // A pause that doubles up to eight seconds until a call is answered.
    [`${doubled} -> M 0`],
    ['1 of M limited 0; 250 ms; 1 of M limited 0 -> M 500'],
    ['1 of M limited 0; 250 ms; 1 of M answered; 1 of M limited 0 -> M 250'],
    // Another user's, with no answer in between, holds all.
    ['1 of M limited 3000; 1 of V limited 2000 -> M 3000, V 2000, H 2000'],
    ['1 of M limited 3000; 1 of H answered; 1 of V limited 2000 -> M 3000, V 2000, H 0'],
    ['1 of ? limited 2000 -> M 2000, ? 2000'],
    ['1 of ? failed; 1 of M failed; 1 of V timed out -> M 0, ? 0'],
    // A call that is not limited within a second passes.
    ['1 of M limited 0; 250 ms; 1 of M answered after 1500; 1 of M limited 0 -> M 250'],
  ])('%s', async (row) => {
    const [steps = '', end = ''] = row.split(' -> ');
    await make(steps);
    const users = end.split(', ').map((each) => each.split(' ')[0] ?? '');
    const held = users.map((name) => `${name} ${breakers.leftMs(name === '?' ? undefined : name)}`);
    expect(held.join(', ')).toBe(end);
  });

  it('twenty 429s at once -> the pause doubles once', async () => {
    const calls = Array.from({ length: 20 }, () => begin('M'));
    for (const call of calls) await call?.end(endOf('limited 0'));
    expect(breakers.leftMs('M')).toBe(250);
    expect(changes).toEqual(['open for M']);
  });

  it('a call that began before the hold is limited after it -> is not taken for the first call after it', async () => {
    const older = begin('M');
    await make('1 of M limited 0; 250 ms');
    await older?.end(endOf('limited 0'));
    expect([breakers.leftMs('M'), changes]).toEqual([0, ['open for M', 'half-open for M']]);
  });

  it('the first call after a pause -> alone, until it has gone for a second without a 429', async () => {
    await make('1 of M limited 0; 250 ms');
    const trial = begin('M');
    await make('999 ms; M is refused; 1 ms');
    expect(state()).toBe('closed');
    await trial?.end(endOf('limited 0'));
    expect(breakers.leftMs('M')).toBe(0);
  });

  it('a 429 at another worker -> holds its user or all, is never shortened, and not reported', async () => {
    breakers.hold('M', 3000);
    breakers.hold('M', 1000);
    expect([breakers.leftMs('M'), breakers.leftMs('V'), changes]).toEqual([3000, 0, []]);
    breakers.hold(undefined, 2000);
    expect([breakers.leftMs('M'), breakers.leftMs('V'), changes]).toEqual([3000, 2000, []]);
    await make('3000 ms; 1 of M answered; 1 of V answered');
    expect(state()).toBe('closed');
  });
});
