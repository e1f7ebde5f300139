import { beforeEach, describe, expect, it, vi } from 'vitest';
import { Failure } from '../../../shared/failures.js';
import { Cancelled, NotBegun } from '../../../workers/gate/ends.js';
import type { Gate } from '../../../workers/gate/gate.js';
import { ImageRoom } from '../../../workers/gate/image-room.js';
import { Slots } from '../../../workers/gate/slots.js';
import { hasRoomFor } from '../../../workers/gate/waiting-jobs.js';
import { ProviderCallError } from '../../../workers/providers/error-classification.js';
import { callOf } from '../../support/calls.js';
import { openGate } from '../../support/gate.js';

let gate: Gate;

beforeEach(() => {
  const open = openGate({ imageRoom: new ImageRoom({ maxBytes: 1 }) });
  ({ gate } = open);
  return () => open.close();
});

const unreachable = new Failure('provider_error', {
  retryable: true,
  cause: new ProviderCallError('Error', undefined, 'ECONNREFUSED'),
});
const denied = new Failure('provider_rejected', { cause: new ProviderCallError('Error', 401) });
const notMade = () => expect.unreachable();
const image = { type: 'image', mediaType: 'image/png', sha256: 'a'.repeat(64), bytes: 1 } as const;
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
  ])(
    'one that is limited %s -> holds the next of its user, and those of others shortly',
    async (_, limit) => {
      const heldMs = (user: string, model = 'm') => gate.heldMs({ model, user });
      expect(heldMs('M')).toBe(0);
      await limit();
      expect(heldMs('M')).toBeGreaterThan(4000);
      expect(heldMs('V')).toBeLessThanOrEqual(250);
      expect(heldMs('M', 'other')).toBe(0);
    },
  );
});

describe('each way out of a call that probes or would', () => {
  let slots: Slots;
  let stop: AbortController;
  let ended: string;
  /** Lets the call of another job end. */
  let held: PromiseWithResolvers<void>;

  beforeEach(async () => {
    vi.useFakeTimers();
    slots = new Slots({ size: () => 1, onChange: () => {} });
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
  const openSlot = () => slots.open({ priority: 0, addedAt: 0 });
  /** A job that makes one call with an image, as far as the gate lets it. */
  async function start(next: () => Promise<unknown>, own: Parameters<typeof callOf>[0] = {}): Promise<void> {
    const slot = openSlot();
    ended = 'waits';
    const call = () => gate.run(callOf({ request, slot, stop: stop.signal, ...own }), next);
    const end = (reason: unknown) => {
      if (reason instanceof Failure) ended = reason.code;
      else ended = reason instanceof Error ? reason.name : 'done';
    };
    const job = slot.take().then(call).then(end, end);
    void job.finally(() => slot.close());
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
        await hold();
        await start(notMade);
        const other = openSlot();
        await other.take();
        held.reject(new Cancelled());
        await pass();
        stop.abort(new Cancelled());
        other.close();
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

it.each<[parked: [user: string, count: number][], user: string, boolean]>([
  [[['M', 499]], 'M', true],
  [[['M', 500]], 'M', false],
  [[['M', 500]], 'V', true],
  [
    [
      ['M', 496],
      ['V', 4],
    ],
    'V',
    true,
  ],
  [
    [
      ['M', 495],
      ['V', 5],
    ],
    'V',
    false,
  ],
  [
    [
      ['M', 500],
      ['U', 50],
    ],
    'V',
    false,
  ],
])('%j jobs wait -> one of %s may wait beside them: %s', (parked, user, hasRoom) => {
  const users = parked.flatMap(([name, count]) => Array<string>(count).fill(name));
  expect(hasRoomFor(user, users)).toBe(hasRoom);
});
