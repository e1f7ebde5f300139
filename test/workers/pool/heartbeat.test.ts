import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { PoolHeartbeat } from '../../../shared/protocol/messages.js';
import { type Heartbeat, startHeartbeat } from '../../../workers/pool/heartbeat.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { createRecordingRelay, type RecordingRelay } from '../../support/recording-relay.js';

let relay: RecordingRelay;
let heartbeat: Heartbeat;
let describePool: () => Promise<PoolHeartbeat>;

const message: PoolHeartbeat = {
  v: 1,
  provider: 'openai',
  worker: 'w1',
  state: 'serving',
  concurrency: 1,
  inFlight: 0,
  waiting: 0,
  meanJobMs: 0,
  hasDefaultModel: true,
};
const start = () => {
  heartbeat = startHeartbeat({ relay, describe: () => describePool(), log: createRecordingLog().log });
};
const states = () => relay.told.map(({ message }) => (message as PoolHeartbeat).state);

beforeEach(() => {
  relay = createRecordingRelay();
  describePool = async () => message;
});
afterEach(() => heartbeat.stop());

describe('startHeartbeat', () => {
  it('tells at once, then once a second', async () => {
    start();
    await heartbeat.started;
    expect(relay.told).toEqual([{ topic: 'pool.openai.w1', message }]);
    const startedAt = performance.now();
    await relay.toldAtLeast(3);
    expect(performance.now() - startedAt).toBeGreaterThan(1500);
  });

  it('tells a change without waiting', async () => {
    start();
    await heartbeat.started;
    describePool = async () => ({ ...message, state: 'paused' });
    heartbeat.publish();
    await relay.toldAtLeast(2);
    expect(states()).toEqual(['serving', 'paused']);
  });

  it('goes on after a heartbeat that could not be told', async () => {
    describePool = () => Promise.reject(new Error('x'));
    start();
    await heartbeat.started;
    describePool = async () => message;
    await relay.toldAtLeast(1);
  });

  it('says goodbye once, and resolves when that is told', async () => {
    start();
    await heartbeat.started;
    await heartbeat.stop();
    expect(states()).toEqual(['serving', 'stopped']);
  });

  it('does not queue heartbeats behind one that hangs, and tells what has changed meanwhile once it is over', async () => {
    start();
    await heartbeat.started;
    const slow = Promise.withResolvers<PoolHeartbeat>();
    let described = 0;
    describePool = () => {
      described += 1;
      return described === 1 ? slow.promise : Promise.resolve(message);
    };
    for (let n = 0; n < 10; n += 1) heartbeat.publish();
    slow.resolve({ ...message, state: 'paused' });
    await relay.toldAtLeast(3);
    await new Promise((resolve) => setImmediate(resolve));
    expect(states()).toEqual(['serving', 'paused', 'serving']);
  });

  it('says goodbye soon although a heartbeat hangs, and nothing after it', async () => {
    start();
    await heartbeat.started;
    const slow = Promise.withResolvers<PoolHeartbeat>();
    describePool = () => slow.promise;
    heartbeat.publish();
    // Without a bound it would wait for the heartbeat, which ends after it.
    await heartbeat.stop();
    slow.resolve(message);
    await new Promise((resolve) => setImmediate(resolve));
    expect(states()).toEqual(['serving', 'stopped']);
  });

  // A breaker that changes while the pool drains makes the API believe in the worker again.
  it('tells nothing after its goodbye, although the breaker changes', async () => {
    start();
    await heartbeat.started;
    await heartbeat.stop();
    heartbeat.publish();
    await new Promise((resolve) => setImmediate(resolve));
    expect(states()).toEqual(['serving', 'stopped']);
  });

  // Nobody waits for a heartbeat that is being described when the goodbye is told, so it can come after it.
  it('tells nothing after its goodbye, although a heartbeat was under way', async () => {
    start();
    await heartbeat.started;
    const slow = Promise.withResolvers<PoolHeartbeat>();
    describePool = () => slow.promise;
    heartbeat.publish();
    describePool = async () => message;
    const stopped = heartbeat.stop();
    setImmediate(() => slow.resolve(message));
    await stopped;
    await slow.promise;
    await new Promise((resolve) => setImmediate(resolve));
    expect(states().at(-1)).toBe('stopped');
  });

  it('says goodbye although the pool can no longer be described', async () => {
    start();
    await heartbeat.started;
    describePool = () => Promise.reject(new Error('the store is down'));
    await heartbeat.stop();
    expect(states()).toEqual(['serving', 'stopped']);
  });
});
