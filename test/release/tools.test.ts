import { randomUUID } from 'node:crypto';
import { Ajv } from 'ajv';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type ProviderId, providerIds } from '../../shared/contract.js';
import { promptCanary } from '../support/canaries.js';
import { authorization, type Deployment, type StartedApi, startDeployment } from '../support/deployment.js';
import { tinyImages } from '../support/images.js';
import { patience } from '../support/patience.js';
import { askWithTools, callsIn, clockTool, functionTool, weatherTool } from '../support/tool-completions.js';

// What can be seen from outside of tools, schemas and images, at all providers: as a caller sees it, and as the
// provider does.

let deployment: Deployment;
let other: StartedApi;
beforeAll(async () => {
  deployment = await startDeployment({});
  other = await deployment.startApi();
});
afterAll(() => deployment?.stop());

/** A model of this provider that nothing else asks for, as the simulator knows it. */
const modelOf = (behaviour: string) => `${behaviour}@${randomUUID()}`;
const callsOf = (model: string) => deployment.simulator.calls.list({ model });
// biome-ignore lint/suspicious/noExplicitAny: what a test expects of it, it says.
const bodyOf = (model: string): any => callsOf(model).at(-1)?.body;

interface Ask {
  provider: ProviderId;
  behaviour?: string;
  headers?: Record<string, string>;
  [field: string]: unknown;
}

/** Asks a model that nothing else asks. */
async function ask({ provider, behaviour = 'sim-echo', headers = {}, ...fields }: Ask) {
  const model = modelOf(behaviour);
  const reply = await askWithTools(deployment, { model: `${provider}/${model}`, ...fields }, { headers });
  return { ...reply, model };
}

const tools = [weatherTool, clockTool];
const warm = `warm, ${promptCanary}`;
const user = (content: unknown) => ({ role: 'user', content });
const called = (...calls: [id: string, name: string, text?: string][]) => ({
  ...{ role: 'assistant', content: null },
  tool_calls: calls.map(([id, name, text = '{}']) => ({
    ...{ id, type: 'function' },
    function: { name, arguments: text },
  })),
});
const result = (id: string, content = warm) => ({ role: 'tool', tool_call_id: id, content });
const modes = providerIds.flatMap((provider) =>
  [false, true].map((stream): [ProviderId, boolean] => [provider, stream]),
);
const hintOf = (ignored: string | null) => (ignored ?? '').split(', ').filter(Boolean);

describe.each(modes)('%s (stream: %s)', (provider, stream) => {
  it.each([
    ['auto', ['weather']],
    ['required', ['weather']],
    [{ type: 'function', function: { name: 'clock' } }, ['clock']],
    ['none', []],
  ] as const)('calls what tool_choice says: %j', async (choice, names) => {
    const reply = await ask({ provider, stream, behaviour: 'sim-tools', tools, tool_choice: choice });
    expect(reply.status).toBe(200);
    expect(callsIn(reply).map(([name]) => name)).toEqual(names);
    expect(reply.finish).toBe(names.length > 0 ? 'tool_calls' : 'stop');
    expect(reply.content).toEqual(names.length > 0 ? null : expect.stringMatching(/./));
    for (const [name, input] of callsIn(reply))
      expect(input).toEqual(name === 'clock' ? {} : { city: expect.any(String), unit: 'celsius' });
  });

  it('calls several tools at once, or one where that is asked for and taken', async () => {
    const asked = { provider, stream, behaviour: 'sim-tools-parallel', tools };
    const both = await ask(asked);
    expect(callsIn(both).map(([name]) => name)).toEqual(['weather', 'clock']);
    expect(both.content).toMatch(/./);
    expect(new Set(both.calls.map(({ id }) => id)).size).toBe(2);
    const one = await ask({ ...asked, parallel_tool_calls: false });
    const isTaken = provider === 'openai' || provider === 'anthropic';
    expect(hintOf(one.ignored)).toEqual(isTaken ? [] : ['parallel_tool_calls']);
    expect(one.calls).toHaveLength(isTaken ? 1 : 2);
  });

  it('gets all results in the order of their calls, and the text after them', async () => {
    const { model, ...reply } = await ask({
      ...{ provider, stream, tools, behaviour: 'sim-verbatim' },
      messages: [
        user('Hello'),
        called(['call-1', 'weather', '{"city":"Köln","unit":"kelvin"}'], ['call-2', 'clock']),
        result('call-2', '{"hour":7}'),
        result('call-1'),
        user('Now?'),
      ],
    });
    expect({ status: reply.status, content: reply.content, finish: reply.finish }).toEqual({
      ...{ status: 200, content: 'Now?', finish: 'stop' },
    });
    expect(resultsAt(provider, bodyOf(model))).toEqual(resultsSent[provider]);
  });

  it('takes calls whose ids come from elsewhere, and each result with its call', async () => {
    const odd = ['é id/with:signs', 'x'.repeat(100), 'x'.repeat(101)] as const;
    const { status, error } = await ask({
      ...{ provider, stream, tools },
      messages: [
        user('Hello'),
        called(...odd.map((id): [string, string] => [id, 'clock'])),
        ...odd.map((id) => result(id)),
      ],
    });
    expect({ status, error }).toEqual({ status: 200, error: undefined });
  });

  it('answers where the history has calls and the request no tools', async () => {
    const messages = [user('Hello'), called(['call-1', 'clock']), result('call-1', '')];
    expect(await ask({ provider, stream, messages })).toMatchObject({ status: 200, finish: 'stop' });
  });

  it('may have nothing to add to results', async () => {
    const messages = [user('Hello'), called(['call-1', 'clock']), result('call-1', '')];
    const reply = await ask({ provider, stream, behaviour: 'sim-null', messages, tools });
    expect(reply).toMatchObject({ status: 200, content: stream ? null : '', finish: 'stop', calls: [] });
    const blank = await ask({ provider, stream, behaviour: 'sim-null', tools });
    expect(blank.error?.code).toBe('provider_error');
  });

  it('calls 128 times at most, each call by an id of its own', async () => {
    const most = await ask({ provider, stream, behaviour: 'sim-tools-128', tools });
    expect([most.status, most.finish]).toEqual([200, 'tool_calls']);
    expect(new Set(most.calls.map(({ id }) => id)).size).toBe(128);
    expect(new Set(most.calls.map(({ function: { arguments: text } }) => text)).size).toBe(1);
    const tooMany = await ask({ provider, stream, behaviour: 'sim-tools-129', tools });
    expect(tooMany.error?.code).toBe('provider_error');
  });

  it('gets back what it signed, and does without it where that has changed', async () => {
    const model = modelOf('sim-tool-signed');
    const asked = { model: `${provider}/${model}`, stream, tools };
    const messages: object[] = [user('Hello')];
    for (let turn = 1; turn <= 3; turn += 1) {
      const { calls, status, finish } = await askWithTools(deployment, { ...asked, messages });
      expect([turn, status, finish]).toEqual([turn, 200, 'tool_calls']);
      const [call] = calls;
      expect(call?.extra_content !== undefined).toBe(provider !== 'openai');
      messages.push({ role: 'assistant', content: null, tool_calls: calls });
      messages.push(result(call?.id ?? ''), user('And now?'));
      // A signature that was refused would cost a call more.
      expect(callsOf(model)).toHaveLength(turn);
    }
    const text = JSON.stringify(messages).replace(
      /(_signature":"|\\"(?:signature|data|redactedContent)\\":\\")/g,
      '$1AAAA',
    );
    const changed = await askWithTools(deployment, { ...asked, messages: JSON.parse(text) });
    expect([changed.status, changed.finish]).toEqual([200, 'tool_calls']);
    expect(callsOf(model)).toHaveLength(provider === 'openai' ? 4 : 5);
  });

  it('says where the token limit cut a call', async () => {
    const cut = await ask({ provider, stream, behaviour: 'sim-tool-cut-12', tools });
    expect(cut).toMatchObject({ status: 200, finish: 'length', calls: [{ function: { name: 'weather' } }] });
  });

  it.each(['sim-tool-unknown', 'sim-tool-garbage', 'sim-tool-nameless'])(
    'never shows an unusable call as one: %s',
    async (behaviour) => {
      const { status, error, finish } = await ask({ provider, stream, behaviour, tools });
      expect({ code: error?.code, finish: finish ?? null }).toEqual({ code: 'provider_error', finish: null });
      if (!stream) expect(status).toBe(502);
    },
  );

  it('replies with JSON that fits a schema', async () => {
    const reply = await ask({ provider, stream, response_format: formatOf(answerSchema) });
    expect(reply).toMatchObject({ status: 200, finish: 'stop', calls: [] });
    const validate = new Ajv().compile(answerSchema);
    expect(validate(JSON.parse(reply.content ?? '')), JSON.stringify(validate.errors)).toBe(true);
  });

  it('fails where a reply that has to be JSON is none', async () => {
    const behaviour = 'sim-format-broken';
    const { model, error } = await ask({
      provider,
      stream,
      behaviour,
      response_format: formatOf(answerSchema),
    });
    expect(error?.code).toBe('provider_error');
    if (!stream) expect(callsOf(model)).toHaveLength(2);
  });

  it('is asked for JSON without a schema where it can be, or refused', async () => {
    const reply = await ask({
      ...{ provider, stream, response_format: { type: 'json_object' } },
      messages: [user('As JSON, please.')],
    });
    if (provider === 'openai' || provider === 'vertexai')
      expect(JSON.parse(reply.content ?? '')).toEqual(expect.any(Object));
    else
      expect(reply.error).toMatchObject({
        code: 'invalid_request',
        param: expect.stringMatching(/^response_format/),
      });
  });

  it('is asked once more without the hints that its model refuses, and not again with one that it has named', async () => {
    const model = modelOf('sim-no-hints');
    const asked = { model: `${provider}/${model}`, stream, ...hintsTaken[provider] };
    const ignored = Object.keys(hintsTaken[provider]);
    const first = await askWithTools(deployment, asked);
    expect([first.status, hintOf(first.ignored).toSorted()]).toEqual([200, ignored.toSorted()]);
    expect(callsOf(model)).toHaveLength(2);
    // Each refusal names one.
    for (const _ of ignored.slice(1)) await askWithTools(deployment, asked);
    const before = callsOf(model).length;
    const last = await askWithTools(deployment, asked);
    expect([last.status, hintOf(last.ignored).toSorted()]).toEqual([200, ignored.toSorted()]);
    expect(callsOf(model)).toHaveLength(before + 1);
    const strict = await askWithTools(deployment, asked, { headers: { Prefer: 'handling=strict' } });
    expect([strict.status, strict.error?.code]).toEqual([400, 'provider_rejected']);
    expect(callsOf(model)).toHaveLength(before + 2);
  });
});

/** The results of the conversation above with what else is in their messages, each as its provider has to get it. */
const resultsSent: Record<ProviderId, unknown> = {
  openai: [
    { role: 'tool', tool_call_id: 'call-1', content: warm },
    { role: 'tool', tool_call_id: 'call-2', content: '{"hour":7}' },
    expect.objectContaining({ role: 'user' }),
  ],
  anthropic: [
    {
      role: 'user',
      content: [
        expect.objectContaining({ type: 'tool_result', tool_use_id: 'call-1' }),
        expect.objectContaining({ type: 'tool_result', tool_use_id: 'call-2' }),
        expect.objectContaining({ type: 'text', text: 'Now?' }),
      ],
    },
  ],
  bedrock: [
    {
      role: 'user',
      content: [
        { toolResult: expect.objectContaining({ toolUseId: 'call-1', content: [{ text: warm }] }) },
        { toolResult: expect.objectContaining({ toolUseId: 'call-2', content: [{ text: '{"hour":7}' }] }) },
        { text: 'Now?' },
      ],
    },
  ],
  vertexai: [
    {
      role: 'user',
      parts: [
        { functionResponse: expect.objectContaining({ name: 'weather', response: { output: warm } }) },
        { functionResponse: expect.objectContaining({ name: 'clock', response: { hour: 7 } }) },
      ],
    },
    { role: 'user', parts: [{ text: 'Now?' }] },
  ],
};

function resultsAt(provider: ProviderId, body: { messages?: unknown[]; contents?: unknown[] }): unknown {
  const sent = (provider === 'vertexai' ? body.contents : body.messages) ?? [];
  return sent.slice(2);
}

const answerSchema = {
  type: 'object',
  properties: {
    kind: { type: 'string', enum: ['yes', 'no'] },
    points: { type: 'array', items: { $ref: '#/$defs/point' } },
  },
  required: ['kind', 'points'],
  additionalProperties: false,
  $defs: {
    point: {
      type: 'object',
      properties: { text: { type: 'string' }, weight: { anyOf: [{ type: 'number' }, { type: 'null' }] } },
      required: ['text', 'weight'],
      additionalProperties: false,
    },
  },
};
const formatOf = (schema: object) => ({ type: 'json_schema', json_schema: { name: 'answer', schema } });
const objectOf = (properties: object) => ({
  ...{ type: 'object', properties, required: Object.keys(properties) },
  additionalProperties: false,
});

/** Hints that the provider takes, but that not each of its models does. */
const hintsTaken: Record<ProviderId, Record<string, unknown>> = {
  openai: { temperature: 0.2, seed: 7, reasoning_effort: 'low' },
  anthropic: { reasoning_effort: 'low' },
  bedrock: { temperature: 0.2, top_p: 0.5 },
  vertexai: { temperature: 0.2, seed: 7 },
};

describe('a hint that a provider does not take', () => {
  const bounded = formatOf(objectOf({ text: { type: 'string', maxLength: 1000 } }));
  const strictTool = functionTool('weather', objectOf({ city: { type: 'string' } }), { strict: true });
  it.each<[string, object, string, ProviderId[]]>([
    [
      'reasoning_effort: minimal',
      { reasoning_effort: 'minimal' },
      'reasoning_effort',
      ['anthropic', 'bedrock'],
    ],
    ['reasoning_effort: xhigh', { reasoning_effort: 'xhigh' }, 'reasoning_effort', ['vertexai']],
    ['verbosity', { verbosity: 'low' }, 'verbosity', ['anthropic', 'bedrock', 'vertexai']],
    [
      'parallel_tool_calls: false',
      { parallel_tool_calls: false, tools },
      'parallel_tool_calls',
      ['bedrock', 'vertexai'],
    ],
    ['strict of a tool', { tools: [strictTool] }, 'tools.strict', ['vertexai']],
    [
      'a keyword of a schema',
      { response_format: bounded },
      'response_format.maxLength',
      ['anthropic', 'bedrock', 'vertexai'],
    ],
  ])('is named, or refused where the caller is strict: %s', async (_, fields, name, without) => {
    for (const provider of providerIds) {
      const isIgnored = without.includes(provider);
      const { status, ignored } = await ask({ provider, ...fields });
      expect([provider, status, hintOf(ignored)]).toEqual([provider, 200, isIgnored ? [name] : []]);
      const strict = await ask({ provider, ...fields, headers: { Prefer: 'handling=strict' } });
      expect([provider, strict.status]).toEqual([provider, isIgnored ? 400 : 200]);
      if (isIgnored) expect(callsOf(strict.model)).toEqual([]);
    }
  });

  it('stays in the description that the model reads', async () => {
    const { model } = await ask({ provider: 'anthropic', response_format: bounded });
    const { properties } = bodyOf(model).output_config.format.schema;
    expect(properties.text).toEqual({ type: 'string', description: expect.stringContaining('1000') });
  });
});

describe('a request that no provider can be asked', () => {
  const claudes: readonly ProviderId[] = ['anthropic', 'bedrock'];
  const open = { type: 'object', additionalProperties: { type: 'string' } };
  const deep = (depth: number): object =>
    depth === 0 ? { type: 'string' } : objectOf({ a: deep(depth - 1) });
  const choose = (name: string) => ({ type: 'function', function: { name } });
  it.each<[string, object, string | RegExp, (readonly ProviderId[])?]>([
    ['a result without a call', { messages: [user('Hi'), result('none')] }, 'messages[1].tool_call_id'],
    [
      'a call without a result',
      { tools, messages: [user('Hi'), called(['a', 'clock'], ['b', 'clock']), result('a'), user('And?')] },
      /^messages\[1\]\.tool_calls/,
    ],
    ['a tool that is no function', { tools: [{ type: 'custom', custom: { name: 'a' } }] }, /^tools/],
    ['a name with signs', { tools: [functionTool('a b')] }, 'tools[0].function.name'],
    [
      'a name that begins with a digit',
      { tools: [functionTool('1a')] },
      'tools[0].function.name',
      ['vertexai'],
    ],
    ['two tools of one name', { tools: [clockTool, clockTool] }, /^tools/],
    ['129 tools', { tools: Array.from({ length: 129 }, (_, n) => functionTool(`t${n}`)) }, 'tools'],
    ['a choice without tools', { tool_choice: 'required' }, 'tool_choice'],
    ['a chosen tool that is not offered', { tools, tool_choice: choose('other') }, /^tool_choice/],
    ['a schema that is too deep', { response_format: formatOf(deep(20)) }, /^response_format/],
    ['a map', { response_format: formatOf(objectOf({ map: open })) }, /^response_format.*map/, claudes],
    [
      'a schema without a type',
      { response_format: formatOf(objectOf({ any: {} })) },
      /^response_format/,
      claudes,
    ],
    ['several choices', { n: 2 }, 'n'],
    ['functions of before', { functions: [{ name: 'a' }] }, 'functions'],
    ['audio', { messages: [user([{ type: 'input_audio', input_audio: {} }])] }, /^messages\[0\]\.content/],
    ['a file', { messages: [user([{ type: 'file', file: {} }])] }, /^messages\[0\]\.content/],
  ])('is refused by name: %s', async (_, fields, param, refusing = providerIds) => {
    for (const provider of providerIds) {
      const { status, error, model } = await ask({ provider, ...fields });
      if (!refusing.includes(provider)) {
        expect([provider, status]).toEqual([provider, 200]);
        continue;
      }
      expect([provider, status, error?.code]).toEqual([provider, 400, 'invalid_request']);
      expect(error?.param).toEqual(typeof param === 'string' ? param : expect.stringMatching(param));
      expect(callsOf(model)).toEqual([]);
    }
  });
});

describe('a model that always thinks', () => {
  it.each(['anthropic', 'bedrock'] as const)('refuses a forced choice, by name: %s', async (provider) => {
    const asked = { provider, behaviour: 'sim-always-thinks', tools };
    expect(await ask({ ...asked, tool_choice: 'required' })).toMatchObject({
      status: 400,
      error: { code: 'provider_rejected', param: 'tool_choice' },
    });
    expect((await ask(asked)).status).toBe(200);
  });
});

describe('bedrock, which has no choice of none', () => {
  it('is asked without tools, or with them where the history has calls, and may not call one', async () => {
    const asked = { provider: 'bedrock', behaviour: 'sim-tools', tools, tool_choice: 'none' } as const;
    const without = await ask(asked);
    expect(bodyOf(without.model)).not.toHaveProperty('toolConfig');
    const messages = [user('Hi'), called(['a', 'clock']), result('a'), user('And?')];
    const { model, error } = await ask({ ...asked, messages });
    expect(bodyOf(model).toolConfig.tools).toHaveLength(2);
    expect(error?.code).toBe('provider_error');
  });
});

describe('a fallback', () => {
  const failing = (more: object) => ({ provider: 'openai', behaviour: 'sim-status-500', ...more }) as Ask;

  it.each([false, true])('gets the tools and the calls of before (stream: %s)', async (stream) => {
    const target = modelOf('sim-tools');
    const reply = await ask(
      failing({
        ...{ stream, tools, headers: { 'X-LLM-Fallback': `vertexai/${target}` } },
        messages: [user('Hi'), called(['a', 'clock']), result('a'), user('And the weather?')],
      }),
    );
    expect(reply).toMatchObject({ status: 200, finish: 'tool_calls' });
    expect(callsIn(reply).map(([name]) => name)).toEqual(['weather']);
    expect(bodyOf(target).contents).toHaveLength(4);
  });

  it('is left out where its provider cannot do what is asked for', async () => {
    const [left, next] = [modelOf('sim-echo'), modelOf('sim-echo')];
    const { status } = await ask(
      failing({
        headers: { 'X-LLM-Fallback': `anthropic/${left}, vertexai/${next}` },
        response_format: { type: 'json_object' },
        messages: [user('As JSON, please.')],
      }),
    );
    expect([status, callsOf(left).length, callsOf(next).length]).toEqual([200, 0, 1]);
  });

  it('is not stopped by a hint, which is named', async () => {
    const headers = { 'X-LLM-Fallback': `bedrock/${modelOf('sim-echo')}` };
    const { status, ignored } = await ask(
      failing({ headers, verbosity: 'low', reasoning_effort: 'minimal' }),
    );
    expect([status, hintOf(ignored).toSorted()]).toEqual([200, ['reasoning_effort', 'verbosity']]);
    const refusing = { 'X-LLM-Fallback': `vertexai/${modelOf('sim-no-hints')}` };
    for (const stream of [false, true]) {
      const reply = await ask(failing({ headers: refusing, stream, temperature: 0.2 }));
      expect([reply.status, hintOf(reply.ignored)]).toEqual([200, ['temperature']]);
    }
  });
});

describe('a stored chat', () => {
  const read = (id: string, headers: Record<string, string> = {}) =>
    fetch(`${deployment.url}/chat/${id}`, { headers: { Authorization: authorization, ...headers } });
  // biome-ignore lint/suspicious/noExplicitAny: what a test expects of it, it says.
  const chatOf = async (id: string): Promise<any> => (await read(id)).json();
  const idOf = ({ headers }: { headers: Headers }) =>
    headers.get('content-location')?.split('/').at(-1) ?? '';

  it.each(modes)(
    'of %s is read as the completion it is, and not as events (stream: %s)',
    async (provider, stream) => {
      const key = randomUUID();
      const asked = { model: `${provider}/${modelOf('sim-tools-parallel')}`, tools };
      const keyed = { headers: { 'Idempotency-Key': key } };
      const first = await askWithTools(deployment, { ...asked, stream }, keyed);
      const chat = await chatOf(idOf(first));
      expect(chat).toMatchObject({ status: 'completed', response: first.content, provider });
      expect(chat.completion).toMatchObject({
        object: 'chat.completion',
        choices: [
          { finish_reason: 'tool_calls', message: { content: first.content, tool_calls: first.calls } },
        ],
      });
      if (first.body) expect(chat.completion).toEqual(first.body);
      const events = await read(idOf(first), { Accept: 'text/event-stream' });
      expect(events.status).toBe(400);
      await events.body?.cancel();
      const again = await askWithTools(deployment, { ...asked, stream }, keyed);
      expect(again.headers.get('idempotency-replayed')).toBe('true');
      expect(again.calls).toEqual(first.calls);
      expect(callsOf(asked.model.slice(provider.length + 1))).toHaveLength(1);
    },
  );

  it('is another one with other tools', async () => {
    const keyed = { headers: { 'Idempotency-Key': randomUUID() } };
    const model = `openai/${modelOf('sim-tools')}`;
    await askWithTools(deployment, { model, tools }, keyed);
    for (const fields of [{ tools: [weatherTool] }, { tools, tool_choice: 'required' }, {}]) {
      const { status, error } = await askWithTools(deployment, { model, ...fields }, keyed);
      expect([status, error?.code]).toEqual([422, 'idempotency_key_reused']);
    }
  });

  it.each(providerIds)('of %s is read at another process while it is written', async (provider) => {
    const keyed = { headers: { 'Idempotency-Key': randomUUID() } };
    const behaviour = modelOf('sim-tool-slow-20-20');
    // Far more than one message or event takes.
    const text = '"ß🦉'.repeat(22_000);
    const long = functionTool('long', objectOf({ text: { type: 'string', enum: [text] } }));
    const asked = { model: `${provider}/${behaviour}`, tools: [long], stream: true };
    const begun = Promise.withResolvers<void>();
    const first = askWithTools(deployment, asked, { ...keyed, onText: () => begun.resolve() });
    await begun.promise;
    const [written, joined] = await Promise.all([first, askWithTools(other, asked, keyed)]);
    expect(written).toMatchObject({ status: 200, finish: 'tool_calls', calls: [{ type: 'function' }] });
    expect([joined.calls, joined.finish]).toEqual([written.calls, written.finish]);
    expect(callsIn(written)).toEqual([['long', { text }]]);
    expect(callsOf(behaviour)).toHaveLength(1);
  });

  it('that was asked for in the background has its calls as well', async () => {
    const headers = { Prefer: 'respond-async' };
    const { status, headers: accepted } = await ask({
      provider: 'anthropic',
      behaviour: 'sim-tools',
      tools,
      headers,
    });
    expect(status).toBe(202);
    const id = accepted.get('location')?.split('/').at(-1) ?? '';
    await vi.waitFor(async () => {
      expect(await chatOf(id)).toMatchObject({
        status: 'completed',
        completion: { choices: [{ message: { tool_calls: [{ function: { name: 'weather' } }] } }] },
      });
    }, patience);
  });
});

describe('an image', () => {
  const urlOf = (type: string, bytes: Uint8Array) =>
    `data:${type};base64,${Buffer.from(bytes).toString('base64')}`;
  const shown = (url: string) => ({
    messages: [
      user([
        { type: 'text', text: 'What is it?' },
        { type: 'image_url', image_url: { url } },
      ]),
    ],
  });
  const types = Object.entries(tinyImages);

  it.each(providerIds)(
    'reaches a model of %s as it is, by what it is and not by what it says',
    async (provider) => {
      for (const [type, bytes] of types) {
        const { model, status, error } = await ask({ provider, ...shown(urlOf('image/png', bytes)) });
        if (provider === 'vertexai' && type === 'image/gif') {
          expect([status, error?.param]).toEqual([
            400,
            expect.stringMatching(/^messages\[0\]\.content\[1\]/),
          ]);
          continue;
        }
        expect([type, status]).toEqual([type, 200]);
        const sent = JSON.stringify(bodyOf(model));
        expect(sent).toContain(Buffer.from(bytes).toString('base64'));
        expect(sent).toContain(provider === 'bedrock' ? type.replace('image/', '') : type);
      }
    },
  );

  it('at an address is fetched by those who do that, and refused elsewhere', async () => {
    const url = 'https://images.example/owl.png';
    for (const provider of providerIds) {
      const { status, model } = await ask({ provider, ...shown(url) });
      const isFetched = provider === 'openai' || provider === 'anthropic';
      expect([provider, status]).toEqual([provider, isFetched ? 200 : 400]);
      if (isFetched) expect(JSON.stringify(bodyOf(model))).toContain(url);
    }
  });

  it('that was stored with a chat is there when that is asked again', async () => {
    const [, bytes] = types[0] ?? expect.unreachable();
    const asked = {
      model: `bedrock/${modelOf('sim-fail-1-500-image')}`,
      ...shown(urlOf('image/png', bytes)),
    };
    const reply = await askWithTools(deployment, asked, { headers: { 'Idempotency-Key': randomUUID() } });
    expect(reply.status).toBe(200);
    const sent = callsOf(asked.model.slice('bedrock/'.length)).map(({ body }) => JSON.stringify(body));
    expect(sent).toHaveLength(2);
    expect(sent[1]).toBe(sent[0]);
  });

  it.each([
    ['none', 'data:image/png;base64,aGVsbG8='],
    ['no base64', 'data:image/png;base64,§§§'],
    ['another scheme', 'file:///etc/passwd'],
    ['a million commas', `data:image/png;base64,${','.repeat(1_000_000)}`],
  ])('that is %s is refused by name', async (_, url) => {
    const { status, error } = await ask({ provider: 'openai', ...shown(url) });
    expect([status, error?.param]).toEqual([400, expect.stringMatching(/^messages\[0\]\.content\[1\]/)]);
  });

  it.each<[ProviderId, number]>([
    ['anthropic', 3_932_161],
    ['bedrock', 3_932_161],
    ['openai', 5_242_881],
  ])('that is too large for %s is refused before the queue (%i bytes)', async (provider, size) => {
    const [, png] = types[0] ?? expect.unreachable();
    const { status } = await ask({ provider, ...shown(urlOf('image/png', Buffer.concat([png], size))) });
    expect([400, 413]).toContain(status);
  });
});
