import { afterAll, afterEach, beforeAll, describe, expect, inject, it, vi } from 'vitest';
import type { Call } from '../../dev/simulator/call.js';
import { parseConfig } from '../../shared/config/config.js';
import { providerIds } from '../../shared/contract.js';
import { type PoolHeartbeat, poolHeartbeatSchema, topics } from '../../shared/protocol/messages.js';
import { openRelay } from '../../shared/queue/relay.js';
import { openQueueStore } from '../../shared/queue/stores/open.js';
import { type ChatReply, type Deployment, startDeployment } from '../support/deployment.js';
import { patience } from '../support/patience.js';
import { createRecordingLog } from '../support/recording-log.js';

let deployment: Deployment;
const start = async (variables: Record<string, string>, workers = 1) => {
  deployment = await startDeployment({ store: inject('store'), workers, variables });
};

const wait = (seconds: number) => ({ Prefer: `wait=${seconds}` });
const callsOf = (model: string) => deployment.simulator.calls.list({ model });
const codeOf = ({ status, body }: ChatReply) => ({ status, code: body.code });

/** The first call of a model, once it has been answered. */
async function answered(model: string): Promise<Call> {
  const call = await deployment.simulator.waitForCall((made) => made.model === model);
  await call.closed;
  return call;
}

/** Asks until the API itself refuses; before its pool has told, a request is queued and waits in vain. */
async function untilRefused(provider: string, model: string): Promise<ChatReply> {
  for (;;) {
    const reply = await deployment.chat({ provider, model, headers: wait(1) });
    if (reply.body.code === 'provider_rate_limited') return reply;
    expect(reply.body.code).toBe('timeout');
  }
}

describe.each(providerIds)('a 429 of %s', (provider) => {
  beforeAll(() => start({}));
  afterAll(() => deployment.stop());

  it('with Retry-After: 1 is mended by one more call, and keeps the others of the model waiting as long, but not other models', async () => {
    const model = 'sim-limit-1-1-key';
    const asked = deployment.chat({ provider, model });
    const limited = await answered(model);
    // The adapter needs a moment to read the answer, and the pool to tell.
    await vi.waitFor(() => expect(deployment.logs()).toContain('provider rate limited'), patience);
    const other = deployment.chat({ provider, model: 'sim-echo@other' });
    const same = deployment.chat({ provider, model });
    const replies = await Promise.all([asked, other, same]);
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 200]);
    const [, second, third] = callsOf(model).map(({ facts }) => facts.receivedAt);
    const [otherAt = Number.NaN] = callsOf('sim-echo@other').map(({ facts }) => facts.receivedAt);
    for (const at of [second, third])
      expect((at ?? 0) - limited.facts.receivedAt).toBeGreaterThanOrEqual(1000);
    expect(otherAt).toBeLessThan(second ?? 0);
    expect(callsOf(model)).toHaveLength(3);
  });

  it('with Retry-After: 3600 fails at once, and then the API refuses, of this model alone', async () => {
    const model = 'sim-retry-after-3600';
    const reply = await deployment.chat({ provider, model });
    expect(codeOf(reply)).toEqual({ status: 500, code: 'provider_rate_limited' });
    expect(reply.body).toMatchObject({ provider, retryable: true });
    expect(reply.headers.get('retry-after')).toBe('3600');

    const refused = await untilRefused(provider, model);
    expect(refused.body).toMatchObject({ status: 500, provider, retryable: true });
    const retryAfter = Number(refused.headers.get('retry-after'));
    expect(retryAfter).toBeGreaterThan(30);
    expect(retryAfter).toBeLessThanOrEqual(60);
    expect(callsOf(model)).toHaveLength(1);
    const replies = await Promise.all(
      providerIds.map((id) => deployment.chat({ provider: id, headers: wait(5) })),
    );
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 200]);

    // Which waits for nothing that is held back.
    const [worker] = deployment.workers;
    if (worker) process.kill(worker.pid, 'SIGTERM');
    expect(await worker?.exitCode).toBe(0);
  });
});

describe('rate limits', () => {
  afterEach(() => deployment.stop());

  it('hold back every worker of the provider', async () => {
    await start({}, 2);
    const heartbeats = await hearBeats();
    const model = 'sim-limit-1-6-held';
    const reply = await deployment.chat({ model, headers: wait(5) });
    // There would be time for a retry, but not within the caller's.
    expect(codeOf(reply)).toEqual({ status: 500, code: 'provider_rate_limited' });
    await vi.waitFor(() => expect(heartbeats.held()).toBe(2), { ...patience, interval: 5 });
    const replies = await Promise.all(
      Array.from({ length: 6 }, () => deployment.chat({ model, headers: wait(30) })),
    );
    expect(replies.map(({ status }) => status)).toEqual(Array(6).fill(200));
    const [limitedAt = 0, ...later] = callsOf(model).map(({ facts }) => facts.receivedAt);
    for (const at of later) expect(at - limitedAt).toBeGreaterThanOrEqual(5900);
    await vi.waitFor(() => expect(heartbeats.held()).toBe(0), patience);
    await heartbeats.close();
  });

  it('never open the breaker, however many there are', async () => {
    await start({ CHAT_TIMEOUT_MS: '6000' });
    const replies = await Promise.all(
      Array.from({ length: 30 }, () => deployment.chat({ model: 'sim-status-429' })),
    );
    for (const { body } of replies) expect(['provider_rate_limited', 'timeout']).toContain(body.code);
    expect((await deployment.chat({ headers: wait(20) })).status).toBe(200);
    expect(deployment.logs()).not.toContain('breaker changed');
  });
});

/** Listens to the pools of OpenAI: how many of them were held back when they last told. */
async function hearBeats() {
  const { log } = createRecordingLog();
  const store = openQueueStore(parseConfig(deployment.stores, 'migrate'), log);
  const relay = await openRelay(store, { name: 'test', log });
  const last = new Map<string, PoolHeartbeat>();
  await relay.subscribe(topics.pool('openai', '*'), poolHeartbeatSchema, (heartbeat) =>
    last.set(heartbeat.worker, heartbeat),
  );
  return {
    held: () =>
      [...last.values()].filter(({ breakers }) => breakers?.some(({ state }) => state === 'limited')).length,
    close: async () => {
      await relay.close();
      await store.close();
    },
  };
}
