import { randomUUID } from 'node:crypto';
import { afterAll, describe, expect, it, vi } from 'vitest';
import type { Chat } from '../../shared/contracts/contract.js';
import { queueName } from '../../shared/protocol/messages.js';
import { authorization, type ChatCall, startDeployment } from '../support/deployment.js';
import { openStoreOf } from '../support/opened-store.js';
import { patience } from '../support/patience.js';
import { profiles } from '../support/profiles.js';

/** Two API processes and one worker, which does one job of OpenAI at a time. */
const deployment = await startDeployment({ variables: { ...profiles.narrow, CHAT_MAX_WAIT_S: '120' } });
afterAll(deployment.stop);
const another = await deployment.startApi();
const store = await openStoreOf(deployment.stores);
afterAll(() => store.close());
const queue = store.createQueue(queueName('openai'));
afterAll(() => queue.close());

const callsOf = (model: string) => deployment.simulator.calls.list({ model });
const arrived = (model: string) => deployment.simulator.waitForCall((call) => call.model === model);
const eventually = <T>(check: () => Promise<T> | T): Promise<T> => vi.waitFor(check, patience);
const keyed = (model: string, key: string): ChatCall => ({ model, headers: { 'Idempotency-Key': key } });

/** Keeps the worker busy until the model's gate is opened. */
async function occupyOpenai(): Promise<{ release(): Promise<void> }> {
  const model = `sim-gate-0@${randomUUID()}`;
  const holding = deployment.chat({ model });
  await arrived(model);
  return {
    release: async () => {
      deployment.simulator.open(model);
      expect((await holding).status).toBe(200);
    },
  };
}

const withCredentials = { headers: { Authorization: authorization } };
async function read(location: string, url = deployment.url): Promise<Chat> {
  const response = await fetch(`${url}${location}`, withCredentials);
  expect([response.status, response.headers.get('cache-control')]).toEqual([200, 'no-store']);
  return (await response.json()) as Chat;
}
const remove = (location: string) =>
  fetch(`${deployment.url}${location}`, { ...withCredentials, method: 'DELETE' });

/** Asks without waiting, and gives where the chat is. */
async function accepted(model: string): Promise<string> {
  const { status, headers, body } = await deployment.chat({ model, headers: { Prefer: 'respond-async' } });
  const location = headers.get('location') ?? '';
  expect([status, headers.get('preference-applied')]).toEqual([202, 'respond-async']);
  expect(location).toBe(`/chat/${body.id}`);
  return location;
}
const becomes = (location: string, status: Chat['status']): Promise<Chat> =>
  eventually(async () => {
    const chat = await read(location);
    expect(chat.status).toBe(status);
    return chat;
  });

describe('a chat with an Idempotency-Key that has been answered', () => {
  it('is sent again to another API process → the same answer, which is also at the address of the chat', async () => {
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
    expect(await read(location)).toMatchObject({ status: 'completed', response: first.body.response });
    expect(callsOf('sim-echo@replayed')).toHaveLength(1);
  });
});

describe('a chat with Prefer: respond-async', () => {
  it('is accepted at once → it is queued, then runs, then is completed, at every API process', async () => {
    const { release } = await occupyOpenai();
    const model = 'sim-gate-0@lifecycle';
    const location = await accepted(model);
    const queued = await read(location);
    expect(Object.keys(queued).sort()).toEqual(['createdAt', 'id', 'model', 'provider', 'status']);
    expect(queued).toMatchObject({ status: 'queued', provider: 'openai', model });
    await release();
    await becomes(location, 'running');
    deployment.simulator.open(model);
    const { completedAt = '', ...chat } = await becomes(location, 'completed');
    expect(chat).toMatchObject({ ...queued, status: 'completed', response: '1' });
    expect(Date.parse(completedAt)).toBeGreaterThanOrEqual(Date.parse(chat.createdAt));
    expect(await read(location, another.url)).toEqual({ ...chat, completedAt });
  });
});

describe('DELETE /chat/{id}', () => {
  it('comes for a queued chat, and again → the chat is not called', async () => {
    const { release } = await occupyOpenai();
    const model = 'sim-echo@deleted';
    const location = await accepted(model);
    for (const _ of [1, 2]) {
      const response = await remove(location);
      expect([response.status, await response.text()]).toEqual([204, '']);
    }
    expect((await read(location)).status).toBe('cancelled');
    await eventually(async () => expect(await queue.count()).toBe(0));
    await release();
    expect((await deployment.chat({ model: 'sim-echo@after' })).status).toBe(200);
    expect(callsOf(model)).toEqual([]);
  });

  it('comes for a running chat → its call ends, and those who wait hear of it at every API process', async () => {
    const model = 'sim-hang@deleted';
    const call = keyed(model, 'deleted-running');
    const waiting = [deployment.chat(call), another.chat(call)];
    const running = await arrived(model);
    const [job] = await queue.getActive();
    expect((await remove(`/chat/${job?.id}`)).status).toBe(204);
    await running.closed;
    expect(running.clientClosedFirst).toBe(true);
    for (const { status, body } of await Promise.all(waiting)) {
      expect([status, body.code, body.retryable]).toEqual([500, 'internal', false]);
      expect(body.detail).toMatch(/cancelled/);
    }
    expect((await read(`/chat/${job?.id}`)).status).toBe('cancelled');
    const again = await deployment.chat(call);
    expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([500, 'true']);
    expect(callsOf(model)).toHaveLength(1);
  });
});

describe('a queued job that the store loses while its caller waits', () => {
  /** Takes the only waiting job of OpenAI away, and gives its id. */
  const takeAway = () =>
    eventually(async () => {
      const [job] = await queue.getJobs(['waiting', 'prioritized']);
      if (job?.id === undefined) throw new Error('nothing waits');
      expect(await queue.remove(job.id)).toBe(1);
      return job.id;
    });

  it.each([
    ['an ordinary chat', {}],
    ['a stored one', { 'Idempotency-Key': 'vanishes' }],
  ])('is of %s → it is put back and called once', async (given, headers) => {
    const { release } = await occupyOpenai();
    const model = `sim-echo@lost-by-${given.replaceAll(' ', '-')}`;
    const waiting = deployment.chat({ model, headers });
    const id = await takeAway();
    await eventually(async () => expect(['waiting', 'prioritized']).toContain(await queue.getJobState(id)));
    await release();
    expect((await waiting).status).toBe(200);
    expect(callsOf(model)).toHaveLength(1);
  });
});

describe('a user who comes to the stream of a stored chat again and again', () => {
  it('→ is refused after a hundred times, may read the chat, and starts others', async () => {
    const { url, chat } = deployment;
    const answered = await chat(keyed('sim-echo', randomUUID()));
    const location = `${url}${answered.headers.get('content-location')}`;
    const come = async () => {
      const headers = { Authorization: authorization, Accept: 'text/event-stream' };
      const response = await fetch(location, { headers });
      const body = await response.text();
      return response.status === 500 ? JSON.parse(body).code : response.status;
    };
    const answers = await Promise.all(Array.from({ length: 150 }, come));
    const admitted = answers.filter((answer) => answer !== 429);
    expect(admitted.length).toBeGreaterThanOrEqual(100);
    expect(admitted.length).toBeLessThan(150);
    // A busy machine may not have read a hundred records at once within the time that a store has.
    expect(new Set(admitted.filter((answer) => answer !== 'queue_unavailable'))).toEqual(new Set([200]));
    expect((await fetch(location, withCredentials)).status).toBe(200);
    expect((await chat({ model: 'sim-echo' })).status).toBe(200);
  });
});
