import { randomUUID } from 'node:crypto';
import type { Queue } from 'bullmq';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Chat } from '../../shared/contract.js';
import { queueName } from '../../shared/protocol/messages.js';
import type { QueueStore } from '../../shared/queue/queue-store.js';
import {
  authorization,
  type ChatCall,
  type Deployment,
  type StartedApi,
  startDeployment,
} from '../support/deployment.js';
import { openStoreOf } from '../support/opened-store.js';
import { patience } from '../support/patience.js';

/** Two API processes and one worker, which does one job of OpenAI at a time. */
let deployment: Deployment;
let another: StartedApi;
let store: QueueStore;
let queue: Queue;

beforeAll(async () => {
  deployment = await startDeployment({
    variables: { OPENAI_CONCURRENCY: '1', CHAT_MAX_WAIT_S: '30' },
  });
  another = await deployment.startApi();
  store = await openStoreOf(deployment.stores);
  queue = store.createQueue(queueName('openai'));
});
afterAll(async () => {
  await queue?.close();
  await store?.close();
  await deployment?.stop();
});
/** The chat that holds the only slot goes. */
const holding = new Set<AbortController>();
afterEach(() => {
  for (const going of holding) going.abort();
  holding.clear();
});

const callsOf = (model: string) => deployment.simulator.calls.list().filter((call) => call.model === model);
const arrived = (model: string) => deployment.simulator.waitForCall((call) => call.model === model);
const eventually = <T>(check: () => Promise<T> | T): Promise<T> => vi.waitFor(check, patience);

/** A caller of its own, and what a second one with the same key asks. */
const keyed = (model: string, key: string, more: ChatCall = {}): ChatCall => ({
  model,
  ...more,
  headers: { 'Idempotency-Key': key, ...more.headers },
});
const respondAsync: ChatCall = { headers: { Prefer: 'respond-async' } };

/** Keeps the worker busy until it is let go. */
async function occupyOpenai(): Promise<() => void> {
  const going = new AbortController();
  holding.add(going);
  const model = `sim-hang@${randomUUID()}`;
  deployment.chat({ model, signal: going.signal }).catch(() => undefined);
  await arrived(model);
  return () => going.abort();
}

const withCredentials = (init: RequestInit = {}): RequestInit => ({
  headers: { Authorization: authorization },
  ...init,
});
async function read(location: string, url = deployment.url): Promise<Chat> {
  const response = await fetch(`${url}${location}`, withCredentials());
  expect([response.status, response.headers.get('cache-control')]).toEqual([200, 'no-store']);
  return (await response.json()) as Chat;
}
const remove = (location: string) =>
  fetch(`${deployment.url}${location}`, withCredentials({ method: 'DELETE' }));

/** Asks without waiting, and gives where the chat is. */
async function accepted(call: ChatCall): Promise<string> {
  const { status, headers, body } = await deployment.chat({ ...respondAsync, ...call });
  const location = headers.get('location') ?? '';
  expect(status).toBe(202);
  expect(headers.get('preference-applied')).toBe('respond-async');
  expect(location).toBe(`/chat/${body.id}`);
  return location;
}
const becomes = (location: string, status: Chat['status']): Promise<Chat> =>
  eventually(async () => {
    const chat = await read(location);
    expect(chat.status).toBe(status);
    return chat;
  });

describe('an Idempotency-Key', () => {
  it('replays a reply that is there, and can be looked up under the id of the first request', async () => {
    const call = keyed('sim-echo@replayed', 'replayed');
    const first = await deployment.chat(call);
    expect([first.status, first.headers.get('idempotency-replayed')]).toEqual([200, null]);
    const second = await another.chat(call);
    expect([second.status, second.headers.get('idempotency-replayed')]).toEqual([200, 'true']);
    expect(second.body).toEqual(first.body);
    for (const name of ['x-llm-provider', 'x-llm-model', 'x-llm-finish-reason', 'server-timing'])
      expect(second.headers.get(name)).toBe(first.headers.get(name));
    const location = `/chat/${first.headers.get('x-request-id')}`;
    for (const { headers } of [first, second]) expect(headers.get('content-location')).toBe(location);
    const chat = await read(location);
    expect(chat).toMatchObject({ status: 'completed', response: first.body.response });
    expect(callsOf('sim-echo@replayed')).toHaveLength(1);
  });
});

describe('Prefer: respond-async', () => {
  it('answers at once, and the chat goes from queued to running to completed', async () => {
    const release = await occupyOpenai();
    const model = 'sim-latency-500@lifecycle';
    const location = await accepted({ model });
    const queued = await read(location);
    expect(Object.keys(queued).sort()).toEqual(['createdAt', 'id', 'model', 'provider', 'status']);
    expect(queued).toMatchObject({ status: 'queued', provider: 'openai', model });
    release();
    await becomes(location, 'running');
    const { completedAt = '', ...chat } = await becomes(location, 'completed');
    expect(chat).toMatchObject({ ...queued, status: 'completed', response: expect.stringMatching(/Hello/) });
    expect(Date.parse(completedAt)).toBeGreaterThanOrEqual(Date.parse(chat.createdAt) + 500);
    expect(await read(location, another.url)).toEqual({ ...chat, completedAt });
  });
});

describe('DELETE /chat/{id}', () => {
  it('keeps a queued chat from being called, and may be repeated', async () => {
    const release = await occupyOpenai();
    const model = 'sim-echo@deleted';
    const location = await accepted({ model });
    for (const _ of [1, 2]) {
      const response = await remove(location);
      expect([response.status, await response.text()]).toEqual([204, '']);
    }
    expect((await read(location)).status).toBe('cancelled');
    await eventually(async () => expect(await queue.count()).toBe(0));
    release();
    expect((await deployment.chat({ model: 'sim-echo@after' })).status).toBe(200);
    expect(callsOf(model)).toEqual([]);
  });

  it('ends a running call at the provider, and tells who waits for it, wherever they do', async () => {
    const model = 'sim-hang@deleted';
    const call = keyed(model, 'deleted-running');
    const waiting = [deployment.chat(call), another.chat(call)];
    const running = await arrived(model);
    const id = await eventually(async () => {
      const [job] = await queue.getActive();
      return String(job?.id);
    });
    expect((await remove(`/chat/${id}`)).status).toBe(204);
    await running.closed;
    expect(running.clientClosedFirst).toBe(true);
    for (const { status, body } of await Promise.all(waiting)) {
      expect([status, body.code, body.retryable]).toEqual([500, 'internal', false]);
      expect(body.detail).toMatch(/cancelled/);
    }
    expect((await read(`/chat/${id}`)).status).toBe('cancelled');
    const again = await deployment.chat(call);
    expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([500, 'true']);
    expect(callsOf(model)).toHaveLength(1);
  });
});

describe('a job that vanishes from the queue', () => {
  /** Takes the only waiting job of OpenAI away, and gives its id. */
  const takeAway = () =>
    eventually(async () => {
      const [job] = await queue.getJobs(['waiting', 'prioritized']);
      if (job?.id === undefined) throw new Error('nothing waits');
      expect(await queue.remove(job.id)).toBe(1);
      return job.id;
    });

  it.each([
    ['an ordinary request', {}],
    ['a stored chat', { 'Idempotency-Key': 'vanishes' }],
  ])('is put back for %s', async (name, headers) => {
    const release = await occupyOpenai();
    const model = `sim-echo@vanishes-${'Idempotency-Key' in headers}`;
    const waiting = deployment.chat({ model, headers });
    const id = await takeAway();
    await eventually(async () =>
      expect(['waiting', 'prioritized'], name).toContain(await queue.getJobState(id)),
    );
    release();
    expect((await waiting).status).toBe(200);
    expect(callsOf(model)).toHaveLength(1);
  });
});
