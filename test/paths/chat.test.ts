import { randomUUID } from 'node:crypto';
import { afterAll, describe, expect, it } from 'vitest';
import { type ProviderId, providerIds } from '../../shared/contracts/contract.js';
import { authorization, startDeployment, username } from '../support/deployment.js';
import { completionOf } from '../support/openai-requests.js';
import { profiles } from '../support/profiles.js';
import { askWithTools, callsIn, clockTool, weatherTool } from '../support/tool-completions.js';
import { describeChats } from './chats.js';

const deployment = await startDeployment({
  variables: { ...profiles.plain, PROVIDER_USER_KEY: 'a key of 16 letters' },
});
afterAll(deployment.stop);
const other = await deployment.startApi();

describeChats(() => ({ deployment, other }));

const callOf = (model: string) => deployment.simulator.calls.list({ model }).at(-1);

describe.each(providerIds)('what is asked of a model of %s', (provider) => {
  it.each([false, true])('holds a NUL → it arrives, and ends the reply (stream: %s)', async (stream) => {
    const model = `sim-stream-20-0@stop-${stream}`;
    const stop = ['\u0000', ' 5'];
    const asked = { model: `${provider}/${model}`, stream, stop, max_completion_tokens: 7 };
    const { status, text, finish } = await completionOf(deployment, asked);
    expect({ status, text, finish }).toEqual({ status: 200, text: '1 2 3 4', finish: 'stop' });
    // OpenAI's Responses knows no texts to stop at, and no limit below 16.
    const parameters = provider === 'openai' ? { maxOutputTokens: 16 } : { stop, maxOutputTokens: 7 };
    expect(callOf(model)).toMatchObject({ provider, parameters });
  });
});

describe.each([false, true])('a hint that OpenAI’s Responses has no field for (stream: %s)', (stream) => {
  const model = `sim-echo@seeded-${stream}`;
  const asked = { model: `openai/${model}`, stream, seed: 7, presence_penalty: 0 };

  it('→ the reply comes without it, and names it', async () => {
    const { status, ignored } = await askWithTools(deployment, asked);
    expect({ status, ignored }).toEqual({ status: 200, ignored: 'seed' });
    expect(callOf(model)?.parameters).not.toHaveProperty('seed');
  });

  it('for a caller who wants it strictly → 400 with its name, and no call', async () => {
    const since = deployment.simulator.calls.lastId;
    const headers = { Prefer: 'handling=strict' };
    const { status, error } = await askWithTools(deployment, asked, { headers });
    expect([status, error?.code, error?.param]).toEqual([400, 'provider_rejected', 'seed']);
    expect(deployment.simulator.calls.list({ since, model })).toEqual([]);
  });
});

it('OpenAI and Anthropic are told who asks → by a hash, the same in each chat, and without the name', async () => {
  const told = async (provider: ProviderId, field: string) => {
    const model = `sim-echo@told-${provider}`;
    const bodies = [];
    for (const content of ['One', 'Two']) {
      await deployment.chat({ provider, model, messages: [{ content }] });
      bodies.push(JSON.stringify(callOf(model)?.body));
    }
    const hashes = bodies.map((body) => new RegExp(`"${field}":"([\\w-]{32})"`).exec(body)?.[1]);
    expect(new Set(hashes).size).toBe(1);
    expect(bodies.join()).not.toContain(username);
    return hashes[0];
  };
  const hash = await told('openai', 'safety_identifier');
  expect(hash).toBeDefined();
  expect(await told('anthropic', 'user_id')).toBe(hash);
});

describe('a fallback', () => {
  it.each([
    {
      ...{ given: 'takes all hints', first: 'openai', next: 'vertexai', asked: { stop: ' 5', seed: 7 } },
      ...{ reply: { text: '1 2 3 4', ignored: null }, parameters: { stop: [' 5'], seed: 7 } },
    },
    {
      ...{ given: 'takes less than the first provider', first: 'openai', next: 'anthropic' },
      asked: { seed: 7, temperature: 0.2, max_tokens: 5 },
      ...{ reply: { ignored: 'temperature, seed' }, parameters: { maxOutputTokens: 5 } },
    },
    {
      ...{ given: 'takes more than the first provider', first: 'anthropic', next: 'vertexai' },
      ...{ asked: { stream: true, seed: 7 }, reply: { ignored: null }, parameters: { seed: 7 } },
    },
  ])('$given → it is asked for what it takes', async ({ given, first, next, asked, reply, parameters }) => {
    const model = `sim-stream-20-0@${given}`.replaceAll(' ', '-');
    const completion = { model: `${first}/sim-status-500@hints`, ...asked };
    const answered = await completionOf(deployment, completion, { 'X-LLM-Fallback': `${next}/${model}` });
    expect(answered).toMatchObject({ status: 200, ...reply });
    expect(callOf(model)).toMatchObject({ provider: next, parameters });
  });

  it('cannot do what is asked for → it is not asked', async () => {
    const schema = { type: 'object', additionalProperties: { type: 'string' } };
    const map = { type: 'json_schema', json_schema: { name: 'a', schema } };
    const headers = { 'X-LLM-Fallback': 'anthropic/sim-echo@not-asked' };
    const asked = {
      ...{ model: 'openai/sim-status-500@refused', response_format: map },
      messages: [{ role: 'user', content: 'As JSON, please.' }],
    };
    expect((await completionOf(deployment, asked, headers)).status).toBe(502);
    expect(callOf('sim-echo@not-asked')).toBeUndefined();
  });
});

const tools = [weatherTool, clockTool];
const modes = providerIds.flatMap((provider) =>
  [false, true].map((stream): [ProviderId, boolean] => [provider, stream]),
);

/** The results that the provider was sent last, in the order of its calls, as texts. */
function resultsAt(model: string): unknown[] {
  const turns = deployment.simulator.calls.list({ model }).at(-1)?.turns ?? [];
  return turns.flatMap(({ content }) =>
    typeof content === 'string'
      ? []
      : content.flatMap((part) => (part.type === 'tool_result' ? [part.content] : [])),
  );
}

describe.each(modes)('a conversation with two calls at %s (stream: %s)', (provider, stream) => {
  it('is called, gets its results in the order of its calls, and is read again as a stored chat', async () => {
    const mark = randomUUID();
    const model = `sim-tools-parallel@${mark}`;
    const asked = { model: `${provider}/${model}`, stream, tools };
    const keyed = { headers: { 'Idempotency-Key': mark } };
    const called = await askWithTools(deployment, asked, keyed);
    expect([called.status, called.finish]).toEqual([200, 'tool_calls']);
    expect(callsIn(called)).toEqual([
      ['weather', { city: expect.any(String), unit: 'celsius' }],
      ['clock', {}],
    ]);

    const location = called.headers.get('content-location') ?? '';
    const stored = await fetch(new URL(location, deployment.url), {
      headers: { Authorization: authorization },
    });
    expect(await stored.json()).toMatchObject({
      ...{ status: 'completed', response: called.content, provider },
      completion: { choices: [{ message: { content: called.content, tool_calls: called.calls } }] },
    });
    const again = await askWithTools(deployment, asked, keyed);
    expect([again.headers.get('idempotency-replayed'), again.calls]).toEqual(['true', called.calls]);
    expect(deployment.simulator.calls.list({ model })).toHaveLength(1);

    const [weather, clock] = called.calls;
    const results = [
      { role: 'tool', tool_call_id: clock?.id, content: 'noon' },
      { role: 'tool', tool_call_id: weather?.id, content: 'sun' },
    ];
    const reading = `sim-echo@${mark}`;
    const answer = await askWithTools(deployment, {
      ...{ ...asked, model: `${provider}/${reading}` },
      messages: [
        { role: 'user', content: 'Hello' },
        { role: 'assistant', content: called.content, tool_calls: called.calls },
        ...results,
      ],
    });
    expect(answer).toMatchObject({ status: 200, finish: 'stop', calls: [] });
    expect(resultsAt(reading)).toEqual(['sun', 'noon']);
  });
});
