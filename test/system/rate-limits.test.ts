import { afterEach, describe, expect, inject, it, vi } from 'vitest';
import { parseConfig } from '../../shared/config/config.js';
import { type PoolHeartbeat } from '../../shared/protocol/messages.js';
import { followPools } from '../../shared/queue/channels.js';
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
});

/** Listens to the pools of OpenAI: how many of them were held back when they last told. */
async function hearBeats() {
  const { log } = createRecordingLog();
  const store = openQueueStore(parseConfig(deployment.stores, 'migrate'), log);
  const relay = await openRelay(store, { name: 'test', log });
  const last = new Map<string, PoolHeartbeat>();
  await followPools(relay, (heartbeat) => {
    if (heartbeat.provider === 'openai') last.set(heartbeat.worker, heartbeat);
  });
  return {
    held: () =>
      [...last.values()].filter(({ breakers }) => breakers?.some(({ state }) => state === 'limited')).length,
    close: async () => {
      await relay.close();
      await store.close();
    },
  };
}
