import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { PoolBeat } from '../../../shared/protocol/messages.js';
import { type Heartbeat, startHeartbeat } from '../../../workers/pool/heartbeat.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { createRecordingTelegraph, type RecordingTelegraph } from '../../support/recording-telegraph.js';

let telegraph: RecordingTelegraph;
let heartbeat: Heartbeat;
let describePool: () => Promise<PoolBeat>;

const beat: PoolBeat = {
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
  heartbeat = startHeartbeat({ telegraph, describe: () => describePool(), log: createRecordingLog().log });
};
const states = () => telegraph.told.map(({ message }) => (message as PoolBeat).state);

beforeEach(() => {
  telegraph = createRecordingTelegraph();
  describePool = async () => beat;
});
afterEach(() => heartbeat.stop());

describe('startHeartbeat', () => {
  it('tells at once, then once a second', async () => {
    start();
    await heartbeat.started;
    expect(telegraph.told).toEqual([{ topic: 'pool.openai.w1', message: beat }]);
    const startedAt = performance.now();
    await telegraph.toldAtLeast(3);
    expect(performance.now() - startedAt).toBeGreaterThan(1500);
  });

  it('tells a change without waiting', async () => {
    start();
    await heartbeat.started;
    describePool = async () => ({ ...beat, state: 'paused' });
    heartbeat.beat();
    await telegraph.toldAtLeast(2);
    expect(states()).toEqual(['serving', 'paused']);
  });

  it('goes on after a beat that could not be told', async () => {
    describePool = () => Promise.reject(new Error('x'));
    start();
    await heartbeat.started;
    describePool = async () => beat;
    await telegraph.toldAtLeast(1);
  });

  it('says goodbye once, and resolves when that is told', async () => {
    start();
    await heartbeat.started;
    await heartbeat.stop();
    expect(states()).toEqual(['serving', 'stopped']);
  });

  it('does not queue beats behind one that hangs, and tells what has changed meanwhile once it is over', async () => {
    start();
    await heartbeat.started;
    const slow = Promise.withResolvers<PoolBeat>();
    let described = 0;
    describePool = () => {
      described += 1;
      return described === 1 ? slow.promise : Promise.resolve(beat);
    };
    for (let n = 0; n < 10; n += 1) heartbeat.beat();
    slow.resolve({ ...beat, state: 'paused' });
    await telegraph.toldAtLeast(3);
    await new Promise((resolve) => setImmediate(resolve));
    expect(states()).toEqual(['serving', 'paused', 'serving']);
  });

  it('says goodbye soon although a beat hangs, and nothing after it', async () => {
    start();
    await heartbeat.started;
    const slow = Promise.withResolvers<PoolBeat>();
    describePool = () => slow.promise;
    heartbeat.beat();
    // Without a bound it would wait for the beat, which ends after it.
    await heartbeat.stop();
    slow.resolve(beat);
    await new Promise((resolve) => setImmediate(resolve));
    expect(states()).toEqual(['serving', 'stopped']);
  });

  // A breaker that changes while the pool drains makes the API believe in the worker again.
  it('tells nothing after its goodbye, although the breaker changes', async () => {
    start();
    await heartbeat.started;
    await heartbeat.stop();
    heartbeat.beat();
    await new Promise((resolve) => setImmediate(resolve));
    expect(states()).toEqual(['serving', 'stopped']);
  });

  // Nobody waits for a beat that is being described when the goodbye is told, so it can come after it.
  it('tells nothing after its goodbye, although a beat was under way', async () => {
    start();
    await heartbeat.started;
    const slow = Promise.withResolvers<PoolBeat>();
    describePool = () => slow.promise;
    heartbeat.beat();
    describePool = async () => beat;
    const stopped = heartbeat.stop();
    setImmediate(() => slow.resolve(beat));
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
