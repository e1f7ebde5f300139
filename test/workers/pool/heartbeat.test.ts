import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { PoolHeartbeat } from '../../../shared/protocol/messages.js';
import { Heartbeat } from '../../../workers/pool/heartbeat.js';
import { heartbeatOf } from '../../support/heartbeats.js';
import { createRecordingLog } from '../../support/recording-log.js';
import { createRecordingRelay, type RecordingRelay } from '../../support/recording-relay.js';

let relay: RecordingRelay;
let heartbeat: Heartbeat;
let describePool: () => Promise<PoolHeartbeat>;

const message = heartbeatOf({ worker: 'w1' });
const openai = () => describePool();
const pools = () => relay.published.flatMap(({ message }) => (message as { pools: PoolHeartbeat[] }).pools);
const states = () => pools().map(({ state }) => state);

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] });
  relay = createRecordingRelay();
  describePool = async () => message;
  heartbeat = new Heartbeat({ relay, worker: 'w1', log: createRecordingLog().log });
});
afterEach(async () => {
  await stop();
  vi.useRealTimers();
});

/** Stops the pool, which waits for a heartbeat that hangs, but not for long. */
const stop = async () => {
  const stopped = heartbeat.stop(openai);
  await vi.advanceTimersByTimeAsync(200);
  await stopped;
};

describe('Heartbeat', () => {
  it('a pool starts -> its state is published at once, then once a second', async () => {
    await heartbeat.start(openai);
    expect(relay.published).toEqual([
      { topic: 'processes', message: { v: 1, worker: 'w1', pools: [message] } },
    ]);
    for (const count of [2, 3]) {
      await vi.advanceTimersByTimeAsync(999);
      expect(relay.published).toHaveLength(count - 1);
      await vi.advanceTimersByTimeAsync(1);
      expect(relay.published).toHaveLength(count);
    }
  });

  it('a change -> it is published without waiting', async () => {
    await heartbeat.start(openai);
    describePool = async () => ({ ...message, state: 'paused' });
    heartbeat.publish();
    await relay.publishedAtLeast(2);
    expect(states()).toEqual(['serving', 'paused']);
  });

  it('a timer that is late -> the last state is published between two jobs, and the store is asked nothing', async () => {
    await heartbeat.start(openai);
    heartbeat.publishIfLate();
    expect(states()).toHaveLength(1);
    const answered = Promise.withResolvers<PoolHeartbeat>();
    describePool = () => answered.promise;
    heartbeat.publish();
    vi.advanceTimersByTime(1600);
    heartbeat.publishIfLate();
    // Before any timer could fire.
    expect(states()).toHaveLength(2);
    answered.resolve(message);
  });

  it('a heartbeat that could not be published -> the next one is', async () => {
    describePool = () => Promise.reject(new Error('x'));
    await heartbeat.start(openai);
    expect(states()).toEqual([]);
    describePool = async () => message;
    await vi.advanceTimersByTimeAsync(1000);
    expect(states()).toEqual(['serving']);
  });

  it('a pool that cannot be described in time -> its last state stands in, in one message for all pools', async () => {
    const bedrock = async () => ({ ...message, provider: 'bedrock' as const });
    await Promise.all([heartbeat.start(openai), heartbeat.start(bedrock)]);
    const startedWith = relay.published.length;
    describePool = () => new Promise(() => undefined);
    const publishing = heartbeat.publish();
    await vi.advanceTimersByTimeAsync(999);
    expect(relay.published).toHaveLength(startedWith);
    await vi.advanceTimersByTimeAsync(1);
    const ids = ['openai', 'bedrock'];
    expect(
      pools()
        .slice(-2)
        .map(({ provider }) => provider),
    ).toEqual(ids);
    expect(relay.published).toHaveLength(startedWith + 1);
    describePool = async () => message;
    // What has come meanwhile, at the second, is published behind it.
    await publishing;
    await heartbeat.stop(bedrock);
    expect(pools().at(-1)).toMatchObject({ provider: 'bedrock', state: 'stopped' });
    await heartbeat.publish();
    expect(pools().at(-1)).toMatchObject({ provider: 'openai', state: 'serving' });
  });

  it('a heartbeat that hangs -> none wait behind it, and what has changed meanwhile is published once it is over', async () => {
    await heartbeat.start(openai);
    const slow = Promise.withResolvers<PoolHeartbeat>();
    let described = 0;
    describePool = () => {
      described += 1;
      return described === 1 ? slow.promise : Promise.resolve(message);
    };
    for (let n = 0; n < 10; n += 1) heartbeat.publish();
    slow.resolve({ ...message, state: 'paused' });
    await relay.publishedAtLeast(3);
    await new Promise((resolve) => setImmediate(resolve));
    expect(states()).toEqual(['serving', 'paused', 'serving']);
  });

  /** Starts a heartbeat that hangs; gives what ends it. */
  const hang = () => {
    const slow = Promise.withResolvers<PoolHeartbeat>();
    describePool = () => slow.promise;
    heartbeat.publish();
    return () => slow.resolve(message);
  };

  // Another message would make the API believe in the worker again. Without a bound, stopping would wait for the
  // heartbeat that hangs.
  it.each<[string, () => () => void]>([
    ['the breaker changes afterwards', () => () => void heartbeat.publish()],
    ['a heartbeat hangs until then', hang],
    [
      'the store is down',
      () => {
        describePool = () => Promise.reject(new Error('the store is down'));
        return () => {};
      },
    ],
  ])('a pool that stops -> that is published once and last, although %s', async (_, prepare) => {
    await heartbeat.start(openai);
    const afterwards = prepare();
    await stop();
    afterwards();
    await new Promise((resolve) => setImmediate(resolve));
    expect(states()).toEqual(['serving', 'stopped']);
  });

  it('a heartbeat that ends while the pool stops -> nothing follows that it is stopped', async () => {
    await heartbeat.start(openai);
    const end = hang();
    describePool = async () => message;
    const stopped = heartbeat.stop(openai);
    setImmediate(end);
    await stopped;
    await new Promise((resolve) => setImmediate(resolve));
    expect(states().at(-1)).toBe('stopped');
  });
});
