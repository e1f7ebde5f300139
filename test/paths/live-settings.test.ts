import pg from 'pg';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { resetPool, type SetOptions, setIntake, setPool } from '../../cli/commands/pool-settings.js';
import type { PoolHeartbeat } from '../../shared/protocol/messages.js';
import { settingsKey } from '../../shared/protocol/settings.js';
import { createToken } from '../support/accounts.js';
import { type ChatReply, type Deployment, startDeployment } from '../support/deployment.js';
import { withLag } from '../support/lateness.js';
import { hearPools } from '../support/opened-store.js';
import { patience } from '../support/patience.js';

/** Far longer than any test: what begins while they run does not begin because one of them has ended. */
const long = 'sim-latency-45000';
const workers = 2;

let deployment: Deployment;
let fleet: Awaited<ReturnType<typeof hearPools>>;
/** Ends the chats of a test. */
let leaving: AbortController;

beforeEach(async () => {
  vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  leaving = new AbortController();
  const variables = { OPENAI_CONCURRENCY: '2', CHAT_TIMEOUT_MS: '60000', WORKER_PROVIDERS: 'openai' };
  deployment = await startDeployment({ workers, variables });
  fleet = await hearPools(deployment.stores);
  await vi.waitFor(() => expect(fleet.pools()).toHaveLength(workers), patience);
});
afterEach(async () => {
  leaving.abort();
  await fleet.close();
  await deployment.stop();
  vi.restoreAllMocks();
});

const ask = (count: number, model = long, headers = {}) =>
  Array.from({ length: count }, () =>
    deployment.chat({ model, headers, signal: leaving.signal }).catch(() => undefined),
  );
const set = (options: SetOptions) => setPool(deployment.stores, 'openai', options);
const intake = (state: 'paused' | 'draining' | 'open') =>
  setIntake(deployment.stores, 'openai', { intake: state });
const inFlight = () => deployment.simulator.calls.inFlight;
const untilInFlight = (count: number) =>
  vi.waitFor(() => expect(inFlight()).toBe(count), { ...patience, interval: 5 });
const codeOf = (reply: ChatReply | undefined) => reply && { status: reply.status, code: reply.body.code };
/** Resolves when the last heartbeat of every worker says this. */
const untilEach = (facts: Partial<PoolHeartbeat>) => {
  const all = Array(workers).fill(expect.objectContaining(facts));
  return vi.waitFor(() => expect(fleet.pools()).toEqual(all), patience);
};
const cut = () =>
  deployment.simulator.calls.list().filter(({ clientClosedFirst }) => clientClosedFirst).length;

/** The time from the end of the change until so many calls are in flight, less what a slow machine adds. */
async function timeUntilInFlight(count: number): Promise<number> {
  const { result, lagMs } = await withLag(async () => {
    const startedAt = performance.now();
    await untilInFlight(count);
    return performance.now() - startedAt;
  });
  return result - lagMs;
}

describe('the concurrency', () => {
  it('is raised and lowered on every worker within a second under long calls, and none is cut', async () => {
    ask(12);
    await untilInFlight(4);
    await set({ concurrency: '5' });
    expect(await timeUntilInFlight(10)).toBeLessThan(1000);
    await set({ concurrency: '1' });
    const over = { concurrency: 1, inFlight: 5, waiting: 2, settingsVersion: 2 };
    await untilEach(over);
    expect(inFlight()).toBe(10);
    expect(cut()).toBe(0);
  });

  it('is bounded over all workers, and that bound raised within a second', async () => {
    await set({ concurrency: '5', globalConcurrency: '3' });
    ask(9);
    await untilEach({ waiting: 6, settingsVersion: 1 });
    expect(inFlight()).toBe(3);
    await set({ globalConcurrency: '7' });
    expect(await timeUntilInFlight(7)).toBeLessThan(1000);
    await set({ globalConcurrency: 'default' });
    expect(await timeUntilInFlight(9)).toBeLessThan(1000);
  });
});

describe('the rate', () => {
  it('holds over all workers, and a higher one within a second', async () => {
    await set({ concurrency: '10', rate: '2/20s' });
    await untilEach({ settingsVersion: 1 });
    // Those that wait for two more windows are in time.
    ask(6, long, { Prefer: 'wait=200' });
    await untilEach({ waiting: 4 });
    expect(inFlight()).toBe(2);
    await set({ rate: '100/1s' });
    expect(await timeUntilInFlight(6)).toBeLessThan(1500);
    await set({ rate: 'default' });
    ask(4);
    await untilInFlight(10);
  });

  it('begins as many jobs in each of its windows, and no more', async () => {
    await set({ rate: '2/2s' });
    await untilEach({ settingsVersion: 1 });
    const replies = await Promise.all(ask(5, 'sim-echo'));
    expect(replies.map((reply) => reply?.status)).toEqual(Array(5).fill(200));
    const at = deployment.simulator.calls.list().map(({ facts }) => facts.receivedAt);
    // The clock of the window and that of the calls are read at different places.
    expect((at[4] ?? 0) - (at[0] ?? 0)).toBeGreaterThan(3500);
  });
});

describe('a pause', () => {
  it('holds on every worker and through restarts, cuts nothing, and ends with everything answered', async () => {
    ask(1);
    await untilInFlight(1);
    await intake('paused');
    const paused = { state: 'paused', pausedBy: 'operator' } as const;
    await untilEach(paused);
    const held = ask(3, 'sim-echo');
    await untilEach({ ...paused, waiting: 3 });
    await deployment.startWorker();
    await vi.waitFor(() => expect(fleet.pools()).toHaveLength(workers + 1), patience);
    for (const pool of fleet.pools()) expect(pool).toMatchObject({ state: 'paused', waiting: 3 });
    expect(deployment.simulator.calls.lastId).toBe(1);
    expect(cut()).toBe(0);
    await intake('open');
    expect((await Promise.all(held)).map((reply) => reply?.status)).toEqual([200, 200, 200]);
  });
});

describe('a pause, for a chat with a fallback,', () => {
  it('has the next provider answer it, whether it came before or comes afterwards', async () => {
    await deployment.startWorker({ WORKER_PROVIDERS: 'anthropic' });
    ask(4);
    await untilInFlight(4);
    const call = { model: 'sim-echo', headers: { 'X-LLM-Fallback': 'anthropic/sim-echo' } };
    const before = deployment.chat(call);
    await untilEach({ waiting: 1 });
    await intake('paused');
    const replies = await Promise.all([before, deployment.chat(call)]);
    for (const { status, headers } of replies)
      expect([status, headers.get('x-llm-provider')]).toEqual([200, 'anthropic']);
  });
});

describe('draining', () => {
  it('refuses new chats at every API process, also a new one, and finishes what is queued', async () => {
    const queued = ask(7, 'sim-latency-1500');
    await untilEach({ waiting: 3 });
    await intake('draining');
    const refused = { status: 500, code: 'provider_unavailable' };
    expect(codeOf(await deployment.chat({}))).toEqual(refused);
    const { chat } = await deployment.startApi();
    expect(codeOf(await chat({}))).toEqual(refused);
    expect((await Promise.all(queued)).map((reply) => reply?.status)).toEqual(Array(7).fill(200));
    await resetPool(deployment.stores, 'openai');
    expect((await chat({})).status).toBe(200);
  });
});

describe('a store that was wiped', () => {
  it('gets the settings and the limits of the queue back', async () => {
    await set({ globalConcurrency: '3', concurrency: '5' });
    await untilEach({ settingsVersion: 1 });
    await wipe(deployment.stores);
    const recorded = () => fleet.store.records.read(settingsKey('openai'));
    await vi.waitFor(async () => expect(await recorded()).toContain('"globalConcurrency":3'), patience);
    await vi.waitFor(async () => expect(await fleet.queue.getGlobalConcurrency()).toBe(3), patience);
  });
});

describe('PUT /admin/pools/{provider}', () => {
  it('takes effect on every worker and at every API process, and each says so', async () => {
    const { url } = await deployment.startApi();
    const { token } = await createToken(deployment);
    const Authorization = `Bearer ${token}`;
    const ask = async (at: string, init: RequestInit = {}) => {
      const response = await fetch(`${at}/admin/pools/openai`, {
        ...init,
        headers: { Authorization, 'Content-Type': 'application/json', 'If-Match': '"0"' },
      });
      return { status: response.status, ...((await response.json()) as Record<string, unknown>) };
    };
    await vi.waitFor(async () => expect((await ask(url)).status).toBe(200), patience);
    const body = JSON.stringify({ concurrency: 5, intake: 'draining' });
    expect(await ask(url, { method: 'PUT', body })).toMatchObject({ status: 200, version: 1 });
    const reached = {
      version: 1,
      workers: { live: workers, current: workers },
      concurrency: { workers: 10 },
    };
    for (const at of [url, deployment.url])
      await vi.waitFor(async () => expect(await ask(at)).toMatchObject(reached), patience);
    expect(codeOf(await deployment.chat({}))).toEqual({ status: 500, code: 'provider_unavailable' });
    expect(await ask(deployment.url, { method: 'PUT', body })).toMatchObject({ status: 412 });
  });
});

/** Forgets what the queue's store knows of settings and limits. */
async function wipe({ DATABASE_URL }: Record<string, string>): Promise<void> {
  const client = new pg.Client({ connectionString: DATABASE_URL });
  await client.connect();
  await client.query('delete from bullmq.quillgate_records; delete from bullmq.meta');
  await client.end();
}
