import { afterAll, describe, expect, it, vi } from 'vitest';
import { addUser } from '../support/accounts.js';
import { authorization, type ChatCall, type ChatReply, startDeployment } from '../support/deployment.js';
import { completionOf } from '../support/openai-requests.js';
import { hearPools } from '../support/opened-store.js';
import { patience } from '../support/patience.js';
import { profiles } from '../support/profiles.js';

const maxInFlight = 2;
const maxPerMinute = 30;

const variables = {
  ...profiles.narrow,
  ...{ WORKER_PROVIDERS: 'openai,anthropic,bedrock', BEDROCK_MAX_OUTPUT_TOKENS: '9' },
  ...{ OPENAI_MODEL: '', ANTHROPIC_MODELS: 'sim-lat*-50,sim-verbatim', ANTHROPIC_MODEL: 'sim-stream-2-0' },
  CHAT_USER_MAX_IN_FLIGHT: String(maxInFlight),
  ...{ CHAT_USER_MAX_PER_MINUTE: String(maxPerMinute), CHAT_USER_MAX_QUEUED_BYTES: '200000' },
};
/** One worker, which does one job of OpenAI at a time and does not serve Vertex AI. */
const deployment = await startDeployment({ variables });
afterAll(deployment.stop);
const fleet = await hearPools(deployment.stores);
afterAll(() => fleet.close());
const credentialsOfAda = await addUser(deployment, 'ada');

const called = (model: string) => deployment.simulator.waitForCall((call) => call.model === model);
const statusesOf = (replies: readonly { status: number }[]) => replies.map(({ status }) => status);
const problemOf = ({ status, body }: ChatReply) => ({ status, code: body.code });

/** Asks Bedrock, which has room for all, as a user of her own. */
const ada = (call: ChatCall = {}) =>
  deployment.chat({
    provider: 'bedrock',
    ...call,
    headers: { ...call.headers, Authorization: credentialsOfAda },
  });

describe('a provider that no worker serves', () => {
  it('is asked → it is refused before the deadline, and others are served', async () => {
    const { chat } = deployment;
    // The first one may be given the benefit of the doubt.
    await chat({ provider: 'vertexai', headers: { Prefer: 'wait=5' } });
    const unserved = { status: 500, code: 'provider_unavailable' };
    expect(problemOf(await chat({ provider: 'vertexai' }))).toEqual(unserved);
    expect((await chat({ provider: 'bedrock' })).status).toBe(200);
  });
});

describe('a provider without a default model', () => {
  it('is asked without one → 400, whether its pool has told so or not', async () => {
    const { chat } = deployment;
    const replies = [await chat({}), await chat({ model: 'sim-echo' }), await chat({})];
    expect(statusesOf(replies)).toEqual([400, 200, 400]);
    for (const reply of [replies[0], replies[2]])
      expect(reply?.body).toMatchObject({ code: 'invalid_request', errors: [{ pointer: 'X-LLM-Model' }] });
  });
});

describe('a provider with a list of models', () => {
  it('is asked → the listed ones and the default one are called, and others refused', async () => {
    const { chat, simulator } = deployment;
    const since = simulator.calls.lastId;
    const asked = ['sim-echo', 'sim-latency-50', 'sim-stream-2-0', 'sim-latency-51', 'sim-verbatim'];
    const replies = [];
    for (const model of asked) replies.push(await chat({ provider: 'anthropic', model }));
    expect(statusesOf(replies)).toEqual([400, 200, 200, 400, 200]);
    expect(replies[0]?.body).toMatchObject({ code: 'invalid_request', errors: [{ pointer: 'X-LLM-Model' }] });
    expect(JSON.stringify(replies[3]?.body)).not.toContain('sim-latency-51');
    expect(simulator.calls.list({ since })).toHaveLength(3);
    expect((await chat({ provider: 'bedrock', model: 'sim-latency-51' })).status).toBe(200);
  });
});

describe('a pool with a limit of tokens', () => {
  it('is asked for more → its limit holds', async () => {
    const model = 'sim-echo@clamped';
    const { status, finish } = await completionOf(deployment, {
      model: `bedrock/${model}`,
      max_tokens: 10_000,
    });
    expect({ status, finish }).toEqual({ status: 200, finish: 'length' });
    expect(deployment.simulator.calls.list({ model })[0]?.parameters).toEqual({ maxOutputTokens: 9 });
  });
});

describe('a user with as many requests in flight as allowed', () => {
  it('asks once more → 429 at once; another user, and later requests, are served', async () => {
    const models = Array.from({ length: maxInFlight }, (_, n) => `sim-gate-0@in-flight-${n}`);
    const asked = models.map((model) => ada({ model }));
    await Promise.all(models.map(called));
    const refused = await ada();
    expect(problemOf(refused)).toEqual({ status: 429, code: 'rate_limited' });
    expect(refused.headers.get('retry-after')).toBe('1');
    expect((await deployment.chat({ provider: 'bedrock' })).status).toBe(200);
    for (const model of models) deployment.simulator.open(model);
    expect(statusesOf(await Promise.all(asked))).toEqual([200, 200]);
    expect((await ada()).status).toBe(200);
  });
});

describe('a user whose stored chat holds most of the bytes that one may hold', () => {
  it('by a tool and the id of a call, asks once more -> 429 until it has ended; others are served', async () => {
    const model = 'openai/sim-gate-0@bytes';
    const headers = { Authorization: authorization, Prefer: 'respond-async' };
    // Twice the half of both would fit.
    const [description, id] = ['x'.repeat(60_000), 'x'.repeat(30_000)];
    const messages = [
      { role: 'user', content: 'Hello' },
      { role: 'assistant', tool_calls: [{ id, type: 'function', function: { name: 'f', arguments: '{}' } }] },
      { role: 'tool', tool_call_id: id, content: 'Rain' },
    ];
    const tools = [{ type: 'function', function: { name: 'f', description } }];
    const body = JSON.stringify({ model, messages, tools });
    const ask = () => deployment.chat({ path: '/v1/chat/completions', body, headers });
    const cancel = (reply: ChatReply) =>
      fetch(`${deployment.url}${reply.headers.get('location')}`, { method: 'DELETE', headers });
    /** Once there is room again. */
    const accepted = () =>
      vi.waitFor(async () => {
        const reply = await ask();
        expect(reply.status).toBe(202);
        return reply;
      }, patience);
    const first = await accepted();
    const refused = await ask();
    expect([refused.status, JSON.stringify(refused.body)]).toEqual([429, expect.stringContaining('bytes')]);
    expect((await ada()).status).toBe(200);
    expect((await cancel(first)).status).toBe(204);
    await cancel(await accepted());
    const small = async () => expect((await deployment.chat({ provider: 'bedrock' })).status).toBe(200);
    await vi.waitFor(small, patience);
  });
});

describe('a caller who waits for a pool with asynchronous chats before it', () => {
  const statusOf = async (location: string | null): Promise<unknown> => {
    const response = await fetch(`${deployment.url}${location}`, {
      headers: { Authorization: credentialsOfAda },
    });
    return ((await response.json()) as { status: unknown }).status;
  };

  it('→ is served before them, and they are served after that', async () => {
    const { simulator } = deployment;
    const [gated, backlog] = ['sim-gate-0@first', 2];
    // By another user than the asynchronous ones, who may have no more in flight.
    const first = completionOf(deployment, { model: `openai/${gated}` });
    await called(gated);
    const asynchronous = {
      ...{ provider: 'openai', model: 'sim-echo@async' },
      headers: { Prefer: 'respond-async' },
    };
    const accepted = [await ada(asynchronous), await ada(asynchronous)];
    expect(statusesOf(accepted)).toEqual([202, 202]);
    const locations = accepted.map((reply) => reply.headers.get('location'));
    const waiting = completionOf(deployment, { model: 'openai/sim-echo@waiting' });
    const queued = { inFlight: 1, waiting: 1, waitingAsync: backlog };
    await vi.waitFor(() => expect(fleet.pools()).toMatchObject([queued]), patience);
    expect(await Promise.all(locations.map(statusOf))).toEqual(Array(backlog).fill('queued'));
    const since = simulator.calls.lastId;
    simulator.open(gated);
    expect(statusesOf(await Promise.all([first, waiting]))).toEqual([200, 200]);
    const all = () => Promise.all(locations.map(statusOf));
    await vi.waitFor(async () => expect(await all()).toEqual(Array(backlog).fill('completed')), patience);
    const served = simulator.calls.list({ since }).map(({ model }) => model);
    expect(served).toEqual(['sim-echo@waiting', ...Array(backlog).fill('sim-echo@async')]);
    expect(await fleet.queue.count()).toBe(0);
  });
});

describe('a user who asks for as many chats in a minute as allowed', () => {
  it('has sent bad requests → they do not count', async () => {
    const bad = Array.from({ length: 2 * maxPerMinute }, () => ada({ messages: [] }));
    expect(new Set(statusesOf(await Promise.all(bad)))).toEqual(new Set([400]));
    expect((await ada()).status).toBe(200);
  });

  it('asks once more → 429 with the rest of the minute; another user is served', async () => {
    const replies = [];
    // On a slow machine a minute may pass before so many are answered.
    while (replies.at(-1)?.status !== 429) replies.push(await ada());
    expect(new Set(statusesOf(replies))).toEqual(new Set([200, 429]));
    const retryAfterS = Number(replies.at(-1)?.headers.get('retry-after'));
    expect(retryAfterS).toBeGreaterThan(0);
    expect(retryAfterS).toBeLessThanOrEqual(60);
    expect((await deployment.chat({ provider: 'bedrock' })).status).toBe(200);
  });
});
