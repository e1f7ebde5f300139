import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Failure, type FailureCode } from '../../../shared/failures.js';
import type { BreakerTimes } from '../../../workers/gate/breaker.js';
import { Breakers } from '../../../workers/gate/breakers.js';
import { AccountSamples, CallSamples } from '../../../workers/gate/call-samples.js';
import { Cancelled, CutForFallback, LockLost } from '../../../workers/gate/ends.js';
import { ProviderCallError, unusableAnswer } from '../../../workers/providers/error-classification.js';
import { admittedCall } from '../../support/calls.js';

const resetMs = 100;
/** Read when the first call fails. */
let times: BreakerTimes;
let breakers: Breakers;
let changes: string[];

const openBreakers = (samples: Pick<CallSamples, 'take'> = new CallSamples()) => {
  const onChange = (state: string, user = 'all') => changes.push(`${state} for ${user}`);
  return new Breakers({ times: () => times, samples, onChange });
};

beforeEach(() => {
  vi.useFakeTimers();
  times = { timeoutMs: 1000, resetMs };
  changes = [];
  breakers = openBreakers();
});
afterEach(() => {
  breakers.dispose();
  vi.useRealTimers();
});

/** A call that ends when the test says so; undefined if it is refused. */
function begin(user: string | undefined, own: Parameters<typeof admittedCall>[0] = {}) {
  const begun = breakers.begin(user);
  if (begun === undefined) return undefined;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const ended = breakers.watch(begun, admittedCall(own), () => promise).catch(() => undefined);
  const end = async (error?: Error) => {
    if (error) reject(error);
    else resolve();
    await ended;
    await vi.advanceTimersByTimeAsync(0);
  };
  return { isProbe: begun.isProbe, end };
}

const called = (cause: ProviderCallError, code: FailureCode = 'provider_rejected') =>
  new Failure(code, { cause });
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
  'an unknown end': unusableAnswer('unknown_end'),
  'malformed arguments': unusableAnswer('malformed_arguments'),
  '401': called(new ProviderCallError('Error', 401)),
  '401 for the model': called(
    Object.assign(new ProviderCallError('Error', 401), { namesModel: true as const }),
  ),
  'out of credit': called(new ProviderCallError('Error', 429, 'insufficient_quota'), 'provider_error'),
  '402': called(
    Object.assign(new ProviderCallError('Error', 402), { seemsOutOfCredit: true }),
    'provider_error',
  ),
  '404': called(new ProviderCallError('Error', 404)),
  unreachable: called(new ProviderCallError('Error', undefined, 'ECONNREFUSED'), 'provider_error'),
};

/**
 * Makes the steps, one call after another: '20 of M timeout after 2900' are twenty of this user that end so, each after
 * 2.9 s; one that is refused is not made. 'M is refused' says so, and '100 ms' is a pause.
 */
async function make(steps: string): Promise<void> {
  for (const step of steps.split('; ')) {
    if (step.endsWith(' is refused')) expect(begin(step.split(' ')[0])).toBeUndefined();
    else if (step.endsWith(' ms')) await vi.advanceTimersByTimeAsync(Number.parseInt(step, 10));
    else await makeCalls(step);
  }
}

async function makeCalls(step: string): Promise<void> {
  const [, count, user, how = '', ms = how === 'cut' ? 1000 : 0] =
    /^(\d+) of (\S+) (.+?)(?: after (\d+))?(?:, .*)?$/.exec(step) ?? [];
  const [isAlive, hasBegun] = [/, (alive|begun)$/.test(step), step.endsWith(', begun')];
  const own = { progress: { isAlive, hasBegun } };
  for (let n = 0; n < Number(count); n += 1) {
    const call = begin(user === '?' ? undefined : user, own);
    await vi.advanceTimersByTimeAsync(Number(ms));
    await call?.end(how in ends ? ends[how] : new Failure(how as FailureCode));
  }
}

/** Such as 'open for M: timeout', of both breakers; 'closed'. */
const state = () =>
  breakers
    .describe()
    .map(({ state, user = 'all', reason }) => `${state} for ${user}: ${reason}`)
    .join(', ') || 'closed';

/** With one user alone, and with calls of unknown users, which count for all at once: the same. */
describe.each<[calls: string, user: string | undefined]>([
  ['calls of one user alone', 'M'],
  ['calls of users unknown', undefined],
])('%s', (_, user) => {
  const name = user ?? '?';
  const opened = `open for ${user ?? 'all'}`;
  const mixed = (count: number, ...calls: string[]) => Array<string[]>(count).fill(calls).flat();
  const nothing = [
    ...['provider_rejected', 'provider_rate_limited', 'content_blocked', 'timeout', 'internal', '401'],
    ...['provider_unavailable', 'failed for good', 'no JSON', 'an unknown tool', 'malformed arguments'],
    'an unknown end',
    // A model that thinks for longer than it may.
    ...['timed out, alive', 'timed out, begun'],
  ];
  it.each<[before: string[], last?: string]>([
    // However many were good before, the tenth in a row is enough, and a refusal does not end the row.
    [['200 answered', '9 failed', '1 answered', ...mixed(9, '1 failed', '1 provider_rejected')], '1 failed'],
    // These are neither held against the provider, nor for it.
    ...nothing.map((end): [string[], string] => [['4 failed', `50 ${end}`], '1 failed']),
    // An end by the caller counts after three times the usual time.
    ...['timeout', 'cut', 'cut for the fallback'].map((end): [string[], string] => [
      ['1 answered after 1000', `20 ${end} after 2900`],
      `5 ${end} after 3100`,
    ]),
    // A wait of one second is the shortest that a caller can ask for, and a little of it is spent on the way.
    [['1 answered after 10', '20 timeout after 850'], '5 timeout after 950'],
    // While no usual time is known, ten in a row are needed.
    ...['provider_rejected', 'provider_rate_limited'].map((end): [string[], string] => [
      ['9 timeout after 3000', `1 ${end}`, '9 timeout after 3000'],
      '1 timeout after 3000',
    ]),
    [['1 answered after 10', '20 timeout after 5000, begun', '20 lost its lock after 5000']],
  ])('%j leave the breaker closed -> %s open it', async (before, last) => {
    const of = (calls: string) => calls.replace(/^\d+/, `$& of ${name}`);
    for (const calls of before) await make(of(calls));
    expect(changes).toEqual([]);
    if (last === undefined) return;
    await make(of(last));
    expect(changes[0]).toBe(opened);
  });

  it('good, bad and other ends in any order -> one breaker counts them all', async () => {
    const kinds = ['answered', 'answered', 'failed', 'failed', 'failed', '404', `${resetMs} ms`];
    const steps = fc.array(fc.constantFrom(...kinds), { maxLength: 60 });
    const check = async (taken: string[]) => {
      breakers = openBreakers();
      const count = countByHand();
      for (const step of taken) {
        await make(step.endsWith('ms') ? step : `1 of ${name} ${step}`);
        expect(breakers.stateFor(user)).toBe(count(step));
      }
      breakers.dispose();
    };
    await fc.assert(fc.asyncProperty(steps, check), { numRuns: 100 });
  });

  it('a probe -> no other call meanwhile, and what says nothing leaves it to the next', async () => {
    await make(
      `6 of ${name} failed; ${resetMs} ms; 1 of ${name} timed out; ${name} is refused; ${resetMs} ms`,
    );
    for (const end of [new Failure('timeout'), new Failure('provider_rejected'), new Cancelled()]) {
      const probe = begin(user);
      expect([probe?.isProbe, begin(user)]).toEqual([true, undefined]);
      await vi.advanceTimersByTimeAsync(3000);
      await probe?.end(end);
      expect(breakers.stateFor(user)).toBe('half-open');
    }
    await make(`1 of ${name} answered; 1 of ${name} failed`);
    const states = ['open', 'half-open', 'open', 'half-open', 'closed'];
    expect(changes).toEqual(states.map((each) => `${each} for ${user ?? 'all'}`));
  });

  it('old calls that end late -> are not taken for the probe, nor counted while it is open', async () => {
    const old = [begin(user), begin(user), begin(user)];
    await make(`5 of ${name} failed`);
    await old[0]?.end();
    expect(breakers.stateFor(user)).toBe('open');
    await make(`${resetMs} ms`);
    await old[1]?.end();
    await old[2]?.end(ends.failed);
    const probe = begin(user);
    expect([breakers.stateFor(user), begin(user)]).toEqual(['half-open', undefined]);
    await probe?.end();
    expect(state()).toBe('closed');
  });

  it('two of three that fail fast -> opens within ten seconds, however good the minute before was', async () => {
    times = { timeoutMs: 45_000, resetMs: 1e9 };
    await make(`600 of ${name} answered after 100`);
    let asked = 0;
    for (; breakers.stateFor(user) === 'closed' && asked < 600; asked += 1)
      await make(`1 of ${name} ${asked % 3 === 0 ? 'answered' : 'failed'} after 100`);
    expect(asked).toBeLessThanOrEqual(120);
  });

  // A window that is shorter than a call, or than five of them at this pace, would never be full.
  it.each([
    [1, 45_000],
    [0.3, 45_000],
    [0.3, 1000],
  ])('%d calls/s that hang, with a time-out of %d ms -> opens', async (perSecond, timeoutMs) => {
    times = { timeoutMs, resetMs: 1e9 };
    const hang = () => {
      const call = begin(user);
      setTimeout(() => void call?.end(ends['timed out']), timeoutMs);
    };
    const pace = setInterval(hang, 1000 / perSecond);
    await vi.advanceTimersByTimeAsync(5 * (1000 / perSecond) + timeoutMs + 1000);
    clearInterval(pace);
    expect(breakers.stateFor(user)).toBe('open');
  });

  it('an operator holds it closed -> no call counts, and it counts anew afterwards', async () => {
    await make(`5 of ${name} failed`);
    breakers.force('closed');
    await make(`20 of ${name} failed; 20 of ${name} timed out; 20 of ${name} cut`);
    expect([state(), breakers.nextProbeMs(user)]).toEqual(['closed', 0]);
    breakers.force(undefined);
    await make(`4 of ${name} failed`);
    expect(state()).toBe('closed');
    breakers.force('open');
    await make(`${name} is refused`);
    expect(state()).toBe('open for all: operator');
  });
});

/** The state of one breaker after each step: more than half of five or more, or ten in a row; a probe after a pause. */
function countByHand(): (step: string) => string {
  let [state, samples] = ['closed', [] as string[]];
  const isFailed = (sample: string) => sample === 'failed';
  const isBad = () =>
    samples.slice(-10).filter(isFailed).length === 10 ||
    (samples.length >= 5 && 2 * samples.filter(isFailed).length > samples.length);
  const take = (step: string) => {
    samples.push(step);
    if (state === 'closed') return isFailed(step) && isBad() ? 'open' : 'closed';
    if (isFailed(step)) return 'open';
    samples = samples.filter((sample) => !isFailed(sample));
    return 'closed';
  };
  return (step) => {
    if (state === 'open') state = step.endsWith('ms') ? 'half-open' : 'open';
    else if (step === 'answered' || step === 'failed') state = take(step);
    return state;
  };
}

describe('calls of several users', () => {
  const inTurn = (count: number, how: string) =>
    `${`1 of M ${how}; 1 of V ${how}; `.repeat(count)}V is refused`;
  it.each([
    // Without an answer in time, which may be the user's doing: any answer shows that it was.
    ['10 of M cut; M is refused', 'open for M: timeout'],
    ['5 of M timed out; M is refused', 'open for M: timeout'],
    ['10 of M cut; 1 of V answered; 1 of M answered', 'closed'],
    ['10 of M cut; 100 ms; 1 of M cut', 'half-open for M: timeout'],
    ['10 of M cut; 100 ms; 1 of M timed out', 'open for M: timeout'],
    [`${'1 of M timed out; 1 of V answered; '.repeat(9)}1 of M answered`, 'closed'],
    ['9 of M timed out; 5 of V timed out', 'open for all: provider_timeout, open for M: timeout'],
    ['1 of V timed out; 9 of M timed out; 1 of V timed out; 1 of V answered', 'closed'],
    [inTurn(3, 'timed out'), 'open for all: provider_timeout'],
    // By an error of the provider.
    ['5 of M failed; M is refused', 'open for M: provider_error'],
    ['5 of M 401 for the model; M is refused', 'open for M: credentials'],
    ['5 of M failed; 1 of V answered; 100 of M failed; M is refused', 'open for M: provider_error'],
    ['5 of M failed; 100 ms; 1 of V answered; 1 of M failed', 'open for M: provider_error'],
    ['5 of M failed; 100 ms; 1 of V answered; 1 of M answered', 'closed'],
    [
      '5 of M failed; 5 of V failed; V is refused',
      'open for all: provider_error, open for M: provider_error',
    ],
    [inTurn(6, 'failed'), 'open for all: provider_error'],
    // That the provider refuses a request shows that it answers, and not that it works.
    [
      `${'1 of M failed; 1 of H provider_rejected; 1 of V failed; 1 of H content_blocked; '.repeat(3)}V is refused`,
      'open for all: provider_error',
    ],
    [`${'1 of M timed out; 1 of H provider_rejected; '.repeat(4)}1 of V timed out`, 'closed'],
    [
      `${'5 of M failed; 100 ms; 1 of V failed; 19 of V answered; '.repeat(20)}1 of V answered`,
      'half-open for M: provider_error',
    ],
  ])('%s -> %s', async (steps, end) => {
    await make(steps);
    expect(state()).toBe(end);
  });

  it.each([
    // Whose probe fails is refused alone, and another user's shows more.
    ['1 of M failed; M is refused', 'half-open for all: provider_error, open for M: provider_error'],
    ['1 of M failed; 1 of V answered', 'open for M: provider_error'],
    ['1 of M timed out; 1 of V answered', 'closed'],
    ['1 of M failed; 1 of V failed', 'open for all: provider_error, open for M: provider_error'],
    // That of the round before shows nothing in this one.
    [
      '1 of V failed; 1 of M failed; 100 ms; 1 of M failed; M is refused; 1 of V answered',
      'open for M: provider_error',
    ],
    // One user alone probes once per pause.
    [`${'1 of M failed; M is refused; 100 ms; '.repeat(3)}1 of M answered`, 'closed'],
  ])('the breaker of all is half-open; %s -> %s', async (steps, end) => {
    await make(`${inTurn(6, 'failed')}; 100 ms; ${steps}`);
    expect(state()).toBe(end);
  });

  it('a probe has no end -> after a second a call of one other user probes beside it, and either may close it', async () => {
    for (const answered of ['M', 'V']) {
      await make(`${inTurn(6, 'failed')}; 100 ms`);
      const first = begin('M');
      await make('899 ms; V is refused; 1 ms; M is refused');
      const second = begin('V');
      await make('900 ms; M is refused; W is refused');
      await (answered === 'M' ? first : second)?.end();
      expect(state()).toBe('closed');
      await (answered === 'M' ? second : first)?.end(ends.cut);
      breakers.dispose();
      breakers = openBreakers();
    }
  });

  it('one that began later was answered -> nobody is refused', async () => {
    const long = ['a', 'b', 'c', 'd', 'e', 'f'].map((user) => begin(user));
    await make('5000 ms; 1 of V answered');
    for (const call of long) await call?.end(ends['timed out']);
    expect(state()).toBe('closed');
  });

  it('calls that end before they are made -> they show nothing', async () => {
    const waiting = Array.from({ length: 10 }, () => begin('M', { startedAt: undefined }));
    await make('5000 ms');
    for (const call of waiting) await call?.end(ends.failed);
    expect(state()).toBe('closed');
  });

  it('one user is refused -> that user delays nobody, unless all are refused', async () => {
    await make('5 of M failed');
    expect(['M', 'V', undefined].map((user) => breakers.isAlone(user))).toEqual([true, false, false]);
    expect([breakers.nextProbeMs('M'), breakers.nextProbeMs('V')]).toEqual([resetMs, 0]);
    await make('5 of V failed');
    expect(breakers.isAlone('M')).toBe(false);
  });
});

describe('the account', () => {
  beforeEach(() => {
    breakers = openBreakers(new AccountSamples());
  });

  it.each([
    ['5 of M 401; M is refused', 'open for M: credentials'],
    ['5 of M 401; 1 of V 404; 100 ms; 1 of M 401', 'open for M: credentials'],
    ['5 of M 401; 100 ms; 1 of M 404', 'closed'],
    ['5 of M 401; 5 of V 401', 'open for all: credentials, open for M: credentials'],
    [`${'1 of M 401; 1 of V 401; '.repeat(3)}V is refused`, 'open for all: credentials'],
    // An odd name is in any text: such an answer is held neither against the account, nor for it.
    ['4 of M 401; 50 of M 401 for the model; 1 of M 401', 'open for M: credentials'],
    // No user can have brought this about.
    ['5 of M unreachable', 'open for all: unreachable'],
    ['1 of M out of credit; V is refused', 'open for all: credit'],
    // Which is asked again after thirty pauses, and after one once it was there.
    [
      '100 of V answered; 1 of M out of credit; 2999 ms; V is refused; 1 ms; 1 of V out of credit',
      'open for all: credit',
    ],
    [
      '1 of M out of credit; 3000 ms; 1 of V out of credit; 2999 ms; V is refused; 1 ms; 1 of V answered',
      'closed',
    ],
    ['1 of M out of credit; 3000 ms; 1 of V answered; 5 of M unreachable; 100 ms; 1 of V answered', 'closed'],
    ['4 of M 401; 1 of V out of credit; 2999 ms; V is refused; 1 ms; 1 of M 404', 'closed'],
    // A request may have been too costly for what is left.
    ['5 of M 402; M is refused; 1 of V answered', 'open for M: credit'],
    ['5 of M 402; 100 ms; 1 of M 402; 2999 ms; M is refused; 1 ms; 1 of M answered', 'closed'],
    [`${'1 of M 402; 1 of V answered; '.repeat(20)}1 of M 402`, 'open for M: credit'],
    [`${'1 of M 402; 1 of V 402; '.repeat(3)}V is refused`, 'open for all: credit'],
    ['5 of M unreachable; 100 ms; 1 of M unreachable', 'open for all: unreachable'],
    ['5 of M unreachable; 100 ms; 1 of M 404', 'closed'],
    [
      '4 of M unreachable; 50 of M failed; 50 of M timed out; 1 of M unreachable',
      'open for all: unreachable',
    ],
  ])('%s -> %s', async (steps, end) => {
    await make(steps);
    expect(state()).toBe(end);
  });
});
