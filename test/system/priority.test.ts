import type { Queue } from 'bullmq';
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest';
import { parseConfig } from '../../shared/config/config.js';
import { type PoolHeartbeat, queueName } from '../../shared/protocol/messages.js';
import { followPools } from '../../shared/queue/channels.js';
import type { QueueStore } from '../../shared/queue/queue-store.js';
import { openRelay, type Relay } from '../../shared/queue/relay.js';
import { openQueueStore } from '../../shared/queue/stores/open.js';
import { authorization, type Deployment, startDeployment } from '../support/deployment.js';
import { patience } from '../support/patience.js';
import { createRecordingLog } from '../support/recording-log.js';

/** One worker, which does one job of OpenAI at a time. */
let deployment: Deployment;
let store: QueueStore;
let queue: Queue;
let relay: Relay;
let heartbeats: PoolHeartbeat[];

beforeAll(async () => {
  const variables = { OPENAI_CONCURRENCY: '1' };
  deployment = await startDeployment({ store: inject('store'), variables });
  const { log } = createRecordingLog();
  store = openQueueStore(parseConfig(deployment.stores, 'migrate'), log);
  queue = store.createQueue(queueName('openai'));
  relay = await openRelay(store, { name: 'test', log });
  heartbeats = [];
  await followPools(relay, (heartbeat) => {
    if (heartbeat.provider === 'openai') heartbeats.push(heartbeat);
  });
});
afterAll(async () => {
  await relay?.close();
  await queue?.close();
  await store?.close();
  await deployment?.stop();
});

const backlog = 5;

const statusOf = async (location: string | null): Promise<unknown> => {
  const headers = { Authorization: authorization };
  const response = await fetch(`${deployment.url}${location}`, { headers });
  return ((await response.json()) as { status: unknown }).status;
};

describe('a caller who waits', () => {
  it('is served before asynchronous chats that came earlier, and those after that', async () => {
    const going = new AbortController();
    deployment.chat({ model: 'sim-hang', signal: going.signal }).catch(() => undefined);
    const { id: since } = await deployment.simulator.waitForCall(({ model }) => model === 'sim-hang');
    const headers = { Prefer: 'respond-async' };
    const accepted = await Promise.all(
      Array.from({ length: backlog }, () => deployment.chat({ model: 'sim-echo@async', headers })),
    );
    expect(new Set(accepted.map(({ status }) => status))).toEqual(new Set([202]));
    const locations = accepted.map((reply) => reply.headers.get('location'));
    expect(await Promise.all(locations.map(statusOf))).toEqual(Array(backlog).fill('queued'));
    const waiting = deployment.chat({ model: 'sim-echo@waiting' });
    await vi.waitFor(
      () => expect(heartbeats.at(-1)).toMatchObject({ inFlight: 1, waiting: 1, waitingAsync: backlog }),
      patience,
    );
    going.abort();
    expect((await waiting).status).toBe(200);
    await vi.waitFor(
      async () =>
        expect(await Promise.all(locations.map(statusOf))).toEqual(Array(backlog).fill('completed')),
      patience,
    );
    const served = deployment.simulator.calls.list({ since }).map(({ model }) => model);
    expect(served).toEqual(['sim-echo@waiting', ...Array(backlog).fill('sim-echo@async')]);
    expect(await queue.count()).toBe(0);
  });
});
