import { beforeEach, describe, expect, it, vi } from 'vitest';
import { Failure } from '../../../shared/failures.js';
import type { Gate } from '../../../workers/gate/gate.js';
import { Cancelled, NotBegun } from '../../../workers/gate/gated-call.js';
import { ImageRoom } from '../../../workers/gate/image-room.js';
import { ProviderCallError } from '../../../workers/providers/errors/error-classification.js';
import { callOf } from '../../support/calls.js';
import { openGate } from '../../support/gate.js';

let gate: Gate;

beforeEach(() => {
  const open = openGate({
    concurrency: 2,
    imageRoom: new ImageRoom({ maxBytes: 1 }),
    namedModels: () => ['named', 'pattern-*'],
  });
  ({ gate } = open);
  return () => open.close();
});

const unreachable = new Failure('provider_error', {
  retryable: true,
  cause: new ProviderCallError('Error', undefined, 'ECONNREFUSED'),
});
const denied = new Failure('provider_rejected', { cause: new ProviderCallError('Error', 401) });
const notMade = () => expect.unreachable();
const image = { type: 'image', mediaType: 'image/png', sha256: 'a'.repeat(64), bytes: 1_048_576 } as const;
const request = { model: 'm', maxOutputTokens: 1, turns: [{ role: 'user' as const, content: [image] }] };

describe('a call', () => {
  it.each<[string, Parameters<typeof callOf>[0], ends: object[]]>([
    ['a first call that cannot reach its provider', {}, [new NotBegun(), unreachable]],
    ['one with a fallback', { hasFallback: true }, [unreachable]],
    ['a retry', { isRetry: true }, [unreachable]],
    ['one whose reply has begun', { hasBegun: true }, [unreachable]],
  ])('%s (%j) -> its job goes back to the queue once, if it has made no other call', async (...row) => {
    const [, own, ends] = row;
    for (const end of ends) {
      const ended = gate.run(callOf(own), () => Promise.reject(unreachable));
      expect(await ended.catch((error) => error)).toEqual(end);
    }
  });

  it.each<[string, Parameters<typeof callOf>[0], end: object]>([
    ['a first call', {}, new NotBegun()],
    ['one with a fallback', { hasFallback: true }, { code: 'provider_unavailable' }],
    ['a retry', { isRetry: true }, { code: 'provider_unavailable' }],
  ])('%s while the account refuses all -> is not made, and its job is for another worker', async (...row) => {
    const [, own, end] = row;
    gate.force('open');
    expect(gate.worstState).toBe('open');
    expect(gate.describe()).toEqual([{ model: null, state: 'open', nextProbeMs: 0, reason: 'operator' }]);
    expect(await gate.run(callOf(own), notMade).catch((error) => error)).toMatchObject(end);
  });

  it.each<[string, Parameters<typeof callOf>[0], end: object]>([
    ['of that user', {}, new NotBegun(true)],
    ['of that user with a fallback', { hasFallback: true }, { code: 'provider_unavailable' }],
    ['of that user once more', { isRetry: true }, { code: 'provider_unavailable' }],
    ['of another user', { user: 'V' }, denied],
  ])(
    'one %s (%j) while the account refuses one user alone -> only that user waits for a worker',
    async (...row) => {
      const [, own, end] = row;
      const call = (given: typeof own) =>
        gate.run(callOf({ user: 'M', ...given }), () => Promise.reject(denied)).catch((error) => error);
      for (let n = 0; n < 5; n += 1) expect(await call({})).toBe(denied);
      expect(await call(own)).toEqual(end instanceof Error ? end : expect.objectContaining(end));
      expect(gate.account.state).toBe('closed');
      expect(gate.describe()).toMatchObject([
        { model: null, state: 'open', reason: 'credentials', user: 'M' },
      ]);
    },
  );

  const limited = new Failure('provider_rate_limited', { retryAfterMs: 5000 });
  it.each<[string, () => unknown]>([
    ['here', () => gate.run(callOf({ user: 'M' }), () => Promise.reject(limited)).catch(() => undefined)],
    ['at another worker', () => gate.hold({ model: 'm', holdMs: 5000, user: 'M' })],
  ])('one that is limited %s -> holds the next of its user, and none of others', async (_, limit) => {
    await limit();
    expect(gate.describe()).toMatchObject([{ model: 'm', state: 'limited', user: 'M' }]);
    expect(gate.maxHeldMs).toBeGreaterThan(4000);
    expect(await gate.run(callOf({ user: 'V' }), async () => 'done')).toBe('done');
  });

  it('one that is limited at another worker for a day -> is held for five minutes', () => {
    gate.hold({ model: 'm', holdMs: 86_400_000, user: 'M' });
    expect(gate.maxHeldMs).toBeLessThanOrEqual(300_000);
  });
});

describe('each way out of a call that probes or would', () => {
  let stop: AbortController;
  let ended: string;
  /** Lets the call of another job end. */
  let held: PromiseWithResolvers<void>;

  beforeEach(async () => {
    vi.useFakeTimers();
    stop = new AbortController();
    held = Promise.withResolvers();
    const failed = new Failure('provider_error');
    for (let n = 0; n < 5; n += 1)
      await gate.run(callOf(), () => Promise.reject(failed)).catch(() => undefined);
    await pass(60_000);
    expect(gate.describe()).toMatchObject([{ model: 'm', state: 'half-open' }]);
    return () => vi.useRealTimers();
  });

  const pass = (ms = 0) => vi.advanceTimersByTimeAsync(ms);
  /** A job that makes one call with an image, as far as the gate lets it. */
  async function start(next: () => Promise<unknown>, own: Parameters<typeof callOf>[0] = {}): Promise<void> {
    ended = 'waits';
    const end = (reason: unknown) => {
      if (reason instanceof Failure) ended = reason.code;
      else ended = reason instanceof Error ? reason.name : 'done';
    };
    void gate.run(callOf({ request, stop: stop.signal, ...own }), next).then(end, end);
    await pass();
  }
  const hold = async (own: Parameters<typeof callOf>[0] = {}) => {
    void gate.run(callOf(own), () => held.promise).catch(() => undefined);
    await pass();
  };
  const done = async () => 'done';
  const outlast = () => Promise.reject(new Failure('provider_timeout'));

  const ways: [string, () => Promise<unknown>, end: string][] = [
    ['a reply', () => start(done), 'done'],
    ['a failure', () => start(() => Promise.reject(new Failure('provider_error'))), 'provider_error'],
    ['no connection', () => start(() => Promise.reject(unreachable)), 'NotBegun'],
    ['a time-out of a model that works', () => start(outlast, { isAlive: true }), 'provider_timeout'],
    [
      'a deadline of one',
      () => start(() => Promise.reject(new Failure('timeout')), { isAlive: true }),
      'timeout',
    ],
    ['a cancel of the call', () => start(() => Promise.reject(new Cancelled())), 'Cancelled'],
    ['a cancel before', () => start(notMade, { stop: AbortSignal.abort(new Cancelled()) }), 'Cancelled'],
    [
      'a refusal by the account',
      async () => {
        gate.force('open');
        await start(notMade);
        gate.force(undefined);
      },
      'NotBegun',
    ],
    [
      'a cancel while it waits for room for its image',
      async () => {
        await hold({ request: { ...request, model: 'other' } });
        await start(notMade);
        expect(gate.parked).toBe(1);
        stop.abort(new Cancelled());
        held.resolve();
      },
      'Cancelled',
    ],
    [
      'a cancel while another call probes',
      async () => {
        await hold();
        await start(notMade);
        stop.abort(new Cancelled());
        held.reject(new Cancelled());
      },
      'Cancelled',
    ],
    [
      'a deadline while another call probes',
      async () => {
        await hold();
        await start(notMade);
        await pass(20_000);
        held.reject(new Cancelled());
      },
      'timeout',
    ],
    [
      'a pool that stops while another call probes',
      async () => {
        await hold();
        await start(notMade);
        gate.close();
        held.reject(new Cancelled());
      },
      'NotBegun',
    ],
    [
      'a cancel while it may begin and waits for a slot',
      async () => {
        for (let n = 0; n < 2; n += 1) await hold({ request: { model: 'other', turns: [] } });
        await start(notMade);
        stop.abort(new Cancelled());
        held.reject(new Cancelled());
      },
      'Cancelled',
    ],
  ];
  it.each(ways)('%s -> the next call has the slot, the room and the right to probe', async (_, out, end) => {
    await out();
    await pass();
    expect(ended).toBe(end);
    // A probe that failed has opened the breaker once more.
    await pass(60_000);
    stop = new AbortController();
    await start(done);
    expect([ended, gate.describe()]).toEqual(['done', []]);
  });
});

describe('the calls of users', () => {
  const failed = new Failure('provider_error');
  const call = (user: string, end?: Error, own: Parameters<typeof callOf>[0] & { model?: string } = {}) => {
    const { model = 'm', ...given } = own;
    const made = callOf({ user, request: { model, turns: [] }, deadline: Date.now() + 50, ...given });
    const next = async () => {
      if (end) throw end;
      return 'done';
    };
    return gate.run(made, next).catch((error) => error);
  };
  const callAll = async (count: number, ...given: Parameters<typeof call>) => {
    for (let n = 0; n < count; n += 1) await call(...given);
  };
  const unavailable = expect.objectContaining({ code: 'provider_unavailable' });

  it('one whose calls fail -> is refused at that model alone, and nobody else', async () => {
    await callAll(5, 'M', failed);
    expect(gate.describe()).toMatchObject([
      { model: 'm', state: 'open', user: 'M', reason: 'provider_error' },
    ]);
    expect(await call('M')).toEqual(unavailable);
    expect(await call('M', undefined, { isRetry: true })).toEqual(unavailable);
    expect([await call('V'), await call('M', undefined, { model: 'other' })]).toEqual(['done', 'done']);
  });

  it('one whose credit is spent, by its code -> refuses that model to all, and the account to that user', async () => {
    const cause = new ProviderCallError('Error', 429, 'insufficient_quota');
    const spent = new Failure('provider_error', { retryable: false, cause });
    expect(await call('M', spent)).toBe(spent);
    expect(await call('V')).toEqual(unavailable);
    expect(await call('M', undefined, { model: 'other' })).toEqual(new NotBegun(true));
    expect(await call('V', undefined, { model: 'other' })).toBe('done');
    expect(gate.describe().map(({ model, user }) => [model, user])).toEqual([
      ['m', undefined],
      [null, 'M'],
      ['m', 'M'],
    ]);
    // Another model of the same user cannot be asked meanwhile; another user's call closes the account for all.
    expect(gate.account.state).toBe('closed');
    await call('W', spent, { model: 'other' });
    expect(gate.account.state).toBe('closed');
    await callAll(1, 'M', spent);
    await call('X', spent, { model: 'third' });
    expect(gate.account.state).toBe('open');
  });

  it('33 other models -> the one that was called longest ago is forgotten, one that operators name is not', async () => {
    await callAll(5, 'M', failed, { model: 'named' });
    await callAll(5, 'M', failed, { model: 'pattern-1' });
    for (let n = 0; n < 31; n += 1) await call('V', undefined, { model: `other-${n}` });
    expect(gate.describe().map(({ model }) => model)).toEqual(['pattern-1', 'named']);
    await call('V', undefined, { model: 'other-31' });
    expect(await call('M', undefined, { model: 'pattern-1' })).toBe('done');
    expect(await call('M', undefined, { model: 'named' })).toEqual(unavailable);
  });

  it('an operator holds breakers closed -> those of models that come later, too', async () => {
    await callAll(5, 'M', failed);
    gate.force('closed');
    await callAll(5, 'M', failed);
    await callAll(5, 'M', failed, { model: 'new' });
    expect(gate.describe()).toEqual([]);
    gate.force(undefined);
    await callAll(5, 'M', failed, { model: 'new' });
    expect(gate.describe()).toMatchObject([{ model: 'new', state: 'open' }]);
  });

  it('an operator holds the account open while jobs wait -> they go back', async () => {
    gate.hold({ model: 'm', holdMs: 50, user: undefined });
    const waiting = call('M', undefined, { deadline: Date.now() + 60_000 });
    await Promise.resolve();
    gate.force('open');
    expect(await waiting).toEqual(new NotBegun());
  });

  it('a probe -> knows that it is one, and its first sign of life lets all begin', async () => {
    vi.useFakeTimers();
    await callAll(5, 'M', failed);
    await vi.advanceTimersByTimeAsync(60_000);
    const seen: boolean[] = [];
    const end = Promise.withResolvers<void>();
    const probing = gate.run(callOf({ user: 'M' }), async ({ pass }) => {
      seen.push(pass.isProbe);
      await end.promise;
      pass.onLife();
      await new Promise(() => {});
    });
    void probing;
    const waiting = gate.run(callOf({ user: 'M' }), async ({ pass }) => seen.push(pass.isProbe));
    await vi.advanceTimersByTimeAsync(1000);
    expect(seen).toEqual([true]);
    end.resolve();
    await waiting;
    expect([seen, gate.describe()]).toEqual([[true, false], []]);
    vi.useRealTimers();
  });
});

describe('a breaker that opens', () => {
  const failed = new Failure('provider_error');
  const fail = () => Promise.reject(failed);
  const unavailable = expect.objectContaining({ code: 'provider_unavailable' });
  const run = (next: () => Promise<unknown>, own: Parameters<typeof callOf>[0] = {}) =>
    gate.run(callOf(own), next).catch((error) => error);
  const failUntilOpen = async () => {
    for (let failures = 0; gate.describe().length === 0; failures++) {
      expect(failures).toBeLessThan(10);
      await run(fail);
    }
  };

  beforeEach(() => {
    vi.useFakeTimers();
    const open = openGate({ concurrency: 2, resetMs: 1000 });
    ({ gate } = open);
    return () => {
      open.close();
      vi.useRealTimers();
    };
  });

  it('while a call hangs at it without a sign of life -> its slot is for others', async () => {
    const other = { request: { model: 'other', turns: [] } };
    const begun: string[] = [];
    const hang = (name: string) => () => {
      begun.push(name);
      return new Promise(() => {});
    };
    void run(hang('first'));
    await failUntilOpen();
    expect(gate.parked).toBe(1);
    for (const name of ['second', 'third']) void run(hang(name), other);
    await vi.advanceTimersByTimeAsync(0);
    expect(begun).toEqual(['first', 'second', 'third']);
  });

  it('because its probe fails -> the calls that waited for the probe are refused at once, retries without a wait', async () => {
    await failUntilOpen();
    await vi.advanceTimersByTimeAsync(1000);
    const probe = Promise.withResolvers<void>();
    void run(() => probe.promise);
    const ended: unknown[] = [];
    void run(notMade).then((end) => ended.push(end));
    await vi.advanceTimersByTimeAsync(0);
    expect(ended).toEqual([]);
    const retried: unknown[] = [];
    void run(notMade, { isRetry: true }).then((end) => retried.push(end));
    await vi.advanceTimersByTimeAsync(0);
    expect(retried).toEqual([unavailable]);
    probe.reject(failed);
    await vi.advanceTimersByTimeAsync(0);
    expect(ended).toEqual([unavailable]);
  });
});
