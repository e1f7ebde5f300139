import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { authorization, type Deployment, startDeployment } from '../support/deployment.js';
import { hearPools } from '../support/opened-store.js';
import { patience } from '../support/patience.js';

/** One worker, which does one job of OpenAI at a time. */
let deployment: Deployment;
let fleet: Awaited<ReturnType<typeof hearPools>>;

beforeAll(async () => {
  const variables = { OPENAI_CONCURRENCY: '1' };
  deployment = await startDeployment({ variables });
  fleet = await hearPools(deployment.stores);
});
afterAll(async () => {
  await fleet?.close();
  await deployment?.stop();
});

const backlog = 5;

const statusOf = async (location: string | null): Promise<unknown> => {
  const response = await fetch(`${deployment.url}${location}`, { headers: { Authorization: authorization } });
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
      () => expect(fleet.pools()).toMatchObject([{ inFlight: 1, waiting: 1, waitingAsync: backlog }]),
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
    expect(await fleet.queue.count()).toBe(0);
  });
});
