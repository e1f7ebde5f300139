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

const turn = () => new Promise((resolve) => setImmediate(resolve));
/** Starts a heartbeat that hangs; gives what ends it. */
const hang = () => {
  const slow = Promise.withResolvers<PoolHeartbeat>();
  describePool = () => slow.promise;
  void heartbeat.publish();
  return (state: PoolHeartbeat['state'] = 'serving') => slow.resolve({ ...message, state });
};

describe('Heartbeat', () => {
  it('a pool starts -> its state is published at once, then once a second, also after one that could not be', async () => {
    await heartbeat.start(openai);
    expect(relay.published).toEqual([
      { topic: 'processes', message: { v: 1, worker: 'w1', pools: [message] } },
    ]);
    relay.broadcast = () => Promise.reject(new Error('the store is down'));
    await vi.advanceTimersByTimeAsync(1000);
    relay.broadcast = relay.publish;
    await vi.advanceTimersByTimeAsync(999);
    expect(relay.published).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(relay.published).toHaveLength(2);
  });

  it('a timer that is late -> the last state is published between two jobs, and the store is asked nothing', async () => {
    await heartbeat.start(openai);
    heartbeat.publishIfLate();
    expect(states()).toHaveLength(1);
    const answer = hang();
    vi.advanceTimersByTime(1600);
    heartbeat.publishIfLate();
    // Before any timer could fire.
    expect(states()).toHaveLength(2);
    answer();
  });

  it('a pool that cannot be described in time -> its last state stands in, in one message for all pools', async () => {
    const bedrock = async () => ({ ...message, provider: 'bedrock' as const });
    await Promise.all([heartbeat.start(openai), heartbeat.start(bedrock)]);
    const startedWith = relay.published.length;
    hang();
    await vi.advanceTimersByTimeAsync(999);
    expect(relay.published).toHaveLength(startedWith);
    await vi.advanceTimersByTimeAsync(1);
    const last = pools().slice(-2);
    expect(last.map(({ provider }) => provider)).toEqual(['openai', 'bedrock']);
    expect(relay.published).toHaveLength(startedWith + 1);
    describePool = async () => message;
    // What has come meanwhile, at the second, is published behind it.
    await heartbeat.publish();
    await heartbeat.stop(bedrock);
    expect(pools().at(-1)).toMatchObject({ provider: 'bedrock', state: 'stopped' });
    await heartbeat.publish();
    expect(pools().at(-1)).toMatchObject({ provider: 'openai', state: 'serving' });
  });

  it('a heartbeat that hangs -> none wait behind it, and what has changed meanwhile is published once it is over', async () => {
    await heartbeat.start(openai);
    const answer = hang();
    describePool = async () => message;
    for (let n = 0; n < 10; n += 1) heartbeat.publish();
    answer('paused');
    await relay.publishedAtLeast(3);
    await turn();
    expect(states()).toEqual(['serving', 'paused', 'serving']);
  });

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
    await turn();
    expect(states()).toEqual(['serving', 'stopped']);
  });

  it('a heartbeat that ends while the pool stops -> nothing follows that it is stopped', async () => {
    await heartbeat.start(openai);
    const answer = hang();
    describePool = async () => message;
    const stopped = heartbeat.stop(openai);
    setImmediate(answer);
    await stopped;
    await turn();
    expect(states().at(-1)).toBe('stopped');
  });
});
