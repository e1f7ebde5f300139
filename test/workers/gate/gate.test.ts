import { beforeEach, describe, expect, it } from 'vitest';
import { Failure } from '../../../shared/failures.js';
import { Cancelled, NotBegun } from '../../../workers/gate/ends.js';
import type { Gate } from '../../../workers/gate/gate.js';
import { ImageRoom } from '../../../workers/gate/image-room.js';
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

describe('each way out', () => {
  const stopped = () => AbortSignal.abort(new Cancelled());
  it.each<[string, () => Promise<unknown>]>([
    ['a reply', () => gate.run(callOf({ request }), async () => 'done')],
    ['a failure', () => gate.run(callOf({ request }), () => Promise.reject(new Failure('provider_error')))],
    ['no connection', () => gate.run(callOf({ request }), () => Promise.reject(unreachable))],
    ['a cancel before', () => gate.run(callOf({ request, stop: stopped() }), notMade)],
    [
      'a refusal by the account',
      async () => {
        gate.force('open');
        await gate.run(callOf({ request }), notMade).catch(() => undefined);
        gate.force(undefined);
      },
    ],
  ])('%s -> leaves the room for images, and the right to begin, to the next', async (_, make) => {
    await make().catch(() => undefined);
    expect(await gate.run(callOf({ request }), async ({ pass }) => pass.isProbe)).toBe(false);
  });

  it('a cancelled wait for room -> takes none', async () => {
    const held = Promise.withResolvers<void>();
    const holding = gate.run(callOf({ request }), () => held.promise);
    const stop = new AbortController();
    const waiting = gate.run(callOf({ request, stop: stop.signal }), notMade);
    setImmediate(() => stop.abort(new Cancelled()));
    await expect(waiting).rejects.toBeInstanceOf(Cancelled);
    held.resolve();
    await holding;
    expect(await gate.run(callOf({ request }), async () => 'done')).toBe('done');
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
