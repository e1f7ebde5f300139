import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { resetPool, type SetOptions, setIntake, setPool } from '../../cli/commands/pool-settings.js';
import type { PoolHeartbeat } from '../../shared/protocol/messages.js';
import { settingsKey } from '../../shared/protocol/settings.js';
import { createToken } from '../support/accounts.js';
import { type ChatCall, type ChatReply, type Deployment, startDeployment } from '../support/deployment.js';
import { hearPools } from '../support/opened-store.js';
import { patience } from '../support/patience.js';
import { profiles } from '../support/profiles.js';

const workers = 2;

/** Two workers with two slots each. */
let deployment: Deployment;
let fleet: Awaited<ReturnType<typeof hearPools>>;
/** The model of a test's long calls, which end with the test. */
let long = 'sim-gate-0@1';
/** The long chats of a test. */
let asked: Promise<ChatReply>[] = [];
/** The last call before a test. */
let before = 0;

beforeAll(async () => {
  vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  const variables = {
    ...profiles.plain,
    OPENAI_CONCURRENCY: '2',
    WORKER_PROVIDERS: 'openai,anthropic',
    CHAT_MAX_WAIT_S: '3600',
  };
  deployment = await startDeployment({ workers, variables });
  fleet = await hearPools(deployment.stores);
  await untilEach({ state: 'serving' });
});
afterEach(async () => {
  await resetPool(deployment.stores, 'openai');
  deployment.simulator.open(long);
  await Promise.all(asked);
  await deployment.restore();
  await vi.waitFor(async () => expect([await fleet.queue.count(), inFlight()]).toEqual([0, 0]), patience);
  await untilEach({ inFlight: 0, state: 'serving', concurrency: 2 });
  before = deployment.simulator.calls.lastId;
  long = `sim-gate-0@${before}`;
  asked = [];
});
afterAll(async () => {
  await fleet?.close();
  await deployment?.stop();
  vi.restoreAllMocks();
});

const ask = (count: number, call: ChatCall = {}): Promise<ChatReply>[] => {
  const replies = Array.from({ length: count }, () => deployment.chat({ model: long, ...call }));
  asked.push(...replies);
  return replies;
};
const set = (options: SetOptions) => setPool(deployment.stores, 'openai', options);
const intake = (state: 'paused' | 'draining' | 'open') =>
  setIntake(deployment.stores, 'openai', { intake: state });
const inFlight = () => deployment.simulator.calls.inFlight;
const untilInFlight = (count: number) => vi.waitFor(() => expect(inFlight()).toBe(count), patience);
const problemOf = ({ status, body }: ChatReply) => ({ status, code: body.code });
/** Resolves when the last heartbeat of every worker that lives says this. */
const untilEach = (facts: Partial<PoolHeartbeat>) =>
  vi.waitFor(() => {
    const living = deployment.workers.map(({ pid }) =>
      fleet.pools().find(({ worker }) => worker.includes(`-${pid}-`)),
    );
    expect(living).toEqual(living.map(() => expect.objectContaining(facts)));
  }, patience);
const calls = () => deployment.simulator.calls.list({ since: before });
const cut = () => calls().filter(({ clientClosedFirst }) => clientClosedFirst).length;

describe('the concurrency of a pool whose calls are all long', () => {
  it('is raised and lowered → every worker follows, and no call is cut', async () => {
    ask(12);
    await untilInFlight(4);
    await set({ concurrency: '5' });
    await untilInFlight(10);
    await set({ concurrency: '1' });
    await untilEach({ concurrency: 1, inFlight: 5, waiting: 2 });
    expect([inFlight(), cut()]).toEqual([10, 0]);
  });

  it('is bounded over all workers, and the bound raised → as many calls as it says', async () => {
    await set({ concurrency: '5', globalConcurrency: '3' });
    ask(9);
    await untilEach({ concurrency: 5, waiting: 6 });
    expect(inFlight()).toBe(3);
    await set({ globalConcurrency: '7' });
    await untilInFlight(7);
    await set({ globalConcurrency: 'default' });
    await untilInFlight(9);
  });
});

describe('the rate of a pool', () => {
  it('is set, raised and taken away → all workers together begin no more jobs than it says', async () => {
    // One slot more, and it would be divided among users.
    await set({ concurrency: '9', rate: '2/10m' });
    await untilEach({ concurrency: 9 });
    // Those that would wait for two more windows are in time.
    ask(6, { headers: { Prefer: 'wait=3600' } });
    await untilEach({ waiting: 4 });
    expect(inFlight()).toBe(2);
    await set({ rate: '2/1s' });
    await untilInFlight(6);
    await set({ rate: 'default' });
    ask(4);
    await untilInFlight(10);
  });
});

describe('a pause', () => {
  const paused = { state: 'paused', pausedBy: 'operator' } as const;

  it('comes while a call runs → it holds on every worker, also a new one, cuts nothing, and then all is answered', async () => {
    ask(1);
    await untilInFlight(1);
    await intake('paused');
    await untilEach(paused);
    const held = ask(3, { model: 'sim-echo' });
    await untilEach({ ...paused, waiting: 3 });
    await deployment.startWorker();
    await untilEach({ ...paused, waiting: 3 });
    expect([calls().length, cut()]).toEqual([1, 0]);
    await intake('open');
    expect((await Promise.all(held)).map((reply) => reply.status)).toEqual([200, 200, 200]);
  });

  it('holds up chats with a fallback, from before and after it → the next provider answers them', async () => {
    ask(4);
    await untilInFlight(4);
    const call = { model: 'sim-echo', headers: { 'X-LLM-Fallback': 'anthropic/sim-echo' } };
    const earlier = deployment.chat(call);
    await vi.waitFor(async () => expect(await fleet.queue.count()).toBe(1), patience);
    await intake('paused');
    for (const { status, headers } of await Promise.all([earlier, deployment.chat(call)]))
      expect([status, headers.get('x-llm-provider')]).toEqual([200, 'anthropic']);
  });
});

describe('a pool that is drained', () => {
  /** Resolves when a new chat gets this answer; one that is taken is given up. */
  const untilAnswered = (chat: Deployment['chat'], answer: { status: number; code?: string | undefined }) =>
    vi.waitFor(async () => {
      expect(problemOf(await chat({ signal: AbortSignal.timeout(10_000) }))).toEqual(answer);
    }, patience);

  it('→ new chats are refused at every API process, also a new one, and what is queued is answered', async () => {
    const queued = ask(7);
    await untilEach({ waiting: 3 });
    await intake('draining');
    const refused = { status: 500, code: 'provider_unavailable' };
    await untilAnswered(deployment.chat, refused);
    const { chat } = await deployment.startApi();
    expect(problemOf(await chat({}))).toEqual(refused);
    deployment.simulator.open(long);
    expect((await Promise.all(queued)).map((reply) => reply.status)).toEqual(Array(7).fill(200));
    await resetPool(deployment.stores, 'openai');
    await untilAnswered(chat, { status: 200, code: undefined });
  });
});

describe('PUT /admin/pools/{provider}', () => {
  it('takes a change → every worker and every API process has it, and one that has not seen it gets 412', async () => {
    const { url } = await deployment.startApi();
    const { token } = await createToken(deployment);
    const at = async (address: string, init: RequestInit = {}) => {
      const headers = {
        Authorization: `Bearer ${token}`,
        'Content-Type': 'application/json',
        ...init.headers,
      };
      const response = await fetch(`${address}/admin/pools/openai`, { ...init, headers });
      return { status: response.status, ...((await response.json()) as { version: number }) };
    };
    await vi.waitFor(async () => expect((await at(url)).status).toBe(200), patience);
    const { version } = await at(url);
    const body = JSON.stringify({ concurrency: 5, intake: 'draining' });
    const change = { method: 'PUT', body, headers: { 'If-Match': `"${version}"` } };
    expect(await at(url, change)).toMatchObject({ status: 200, version: version + 1 });
    const reached = {
      ...{ version: version + 1, concurrency: { workers: 10 } },
      workers: { live: workers, current: workers },
    };
    for (const address of [url, deployment.url])
      await vi.waitFor(async () => expect(await at(address)).toMatchObject(reached), patience);
    expect(problemOf(await deployment.chat({}))).toEqual({ status: 500, code: 'provider_unavailable' });
    expect(await at(deployment.url, change)).toMatchObject({ status: 412 });
  });
});

describe('a store that was wiped', () => {
  it('→ it has the settings and the limits of the queue again', async () => {
    await set({ globalConcurrency: '3', concurrency: '5' });
    await untilEach({ concurrency: 5 });
    const client = new pg.Client({ connectionString: deployment.stores.DATABASE_URL });
    await client.connect();
    await client.query('delete from bullmq.quillgate_records; delete from bullmq.meta');
    await client.end();
    const recorded = () => fleet.store.records.read(settingsKey('openai'));
    await vi.waitFor(async () => expect(await recorded()).toContain('"globalConcurrency":3'), patience);
    await vi.waitFor(async () => expect(await fleet.queue.getGlobalConcurrency()).toBe(3), patience);
  });
});
