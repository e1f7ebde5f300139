import { beforeEach, describe, expect, it } from 'vitest';
import { type FleetSource, FleetState } from '../../../shared/fleet/fleet-state.js';
import { Heartbeats } from '../../../shared/fleet/heartbeats.js';
import type { QueueDepth } from '../../../shared/queue/queue-store.js';
import { release } from '../../../shared/runtime/program.js';
import { heartbeatOf } from '../../support/heartbeats.js';

const never = new Promise<never>(() => {});
let check: () => Promise<void>;
let measure: () => Promise<QueueDepth>;
let counts: number;
let source: FleetSource;
const open = (times = {}) =>
  new FleetState({ store: { kind: 'redis', check: () => check() }, source, ...times });
let state: FleetState;
beforeEach(() => {
  check = async () => {};
  measure = async () => ({ waiting: 2, active: 1, oldestAddedAt: 0 });
  counts = 0;
  source = {
    heartbeats: new Heartbeats(),
    isConnected: true,
    measure: (provider) => {
      counts += 1;
      return provider === 'openai' ? measure() : Promise.resolve({ ...none });
    },
  };
  state = open();
});
const none: QueueDepth = { waiting: 0, active: 0, oldestAddedAt: undefined };
const hear = () =>
  source.heartbeats.add(heartbeatOf({ concurrency: 2, inFlight: 1, meanJobMs: 1, simulated: true }));

describe('FleetState', () => {
  it('a fleet -> the queue, every provider with what waits, and its workers', async () => {
    hear();
    const { queue, providers, ...rest } = await state.read();
    expect(rest).toEqual({ at: expect.any(String), release });
    expect(queue).toEqual({ store: 'redis', status: 'ok' });
    expect(providers).toHaveLength(4);
    expect(providers[0]).toMatchObject({
      ...{ provider: 'openai', state: 'serving', kind: 'simulated', concurrency: 2, inFlight: 1 },
      queue: { waiting: 2, active: 1, oldestSince: '1970-01-01T00:00:00.000Z' },
      workers: [{ worker: 'one' }],
    });
    expect(providers[1]).toMatchObject({ queue: { waiting: 0, active: 0 }, workers: [] });
  });

  it('all who ask within a second -> one count', async () => {
    await Promise.all([state.read(), state.read()]);
    await state.read();
    expect(counts).toBe(4);
  });

  it('a queue that cannot be reached -> says so, and of no provider that it has no workers', async () => {
    check = () => Promise.reject(Object.assign(new Error('canary'), { code: 'ECONNREFUSED' }));
    measure = () => Promise.reject(new Error('canary'));
    const { queue, providers } = await state.read();
    const detail = 'the store cannot be reached (ECONNREFUSED)';
    expect(queue).toEqual({ store: 'redis', status: 'failing', detail });
    for (const { state, queue } of providers)
      expect({ state, queue }).toEqual({ state: 'unknown', queue: undefined });
    measure = async () => none;
    expect((await state.read()).providers[0]?.queue).toEqual({ waiting: 0, active: 0 });
  });

  it('what hangs -> is not waited for', async () => {
    state = open({ timeoutMs: 20 });
    check = () => never;
    measure = () => never;
    hear();
    const { queue, providers } = await state.read();
    expect(queue).toMatchObject({ status: 'failing' });
    expect(providers[0]).toMatchObject({ state: 'serving' });
    expect(providers[0]).not.toHaveProperty('queue');
  });

  it('a store that takes long -> one count at a time', async () => {
    state = open({ timeoutMs: 20 });
    const hanging = Promise.withResolvers<QueueDepth>();
    measure = () => hanging.promise;
    expect(await Promise.all([state.readDepths(), state.readDepths()])).toEqual([undefined, undefined]);
    expect([await state.readDepths(), counts]).toEqual([undefined, 4]);
    hanging.resolve(none);
    expect((await state.readDepths())?.get('openai')).toEqual(none);
  });

  it('a queue that was never reached -> says so', async () => {
    const measure = () => Promise.reject(new Error('not connected'));
    source = { heartbeats: new Heartbeats({ since: Infinity }), isConnected: false, measure };
    state = open();
    expect(await state.readDepths()).toBeUndefined();
    const { queue, providers } = await state.read();
    expect(queue).toEqual({ store: 'redis', status: 'failing', detail: 'not connected yet' });
    expect(providers.map((each) => each.state)).toEqual(Array(4).fill('unknown'));
  });
});
