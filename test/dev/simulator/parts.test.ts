import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Simulator, startSimulator } from '../../../dev/simulator/server.js';
import { type ProviderId, providerIds } from '../../../shared/contract.js';
import { type Asked, requestOf } from './part-requests.js';
import { ask } from './replies.js';
import { validRequest } from './requests.js';

let simulator: Simulator;
beforeAll(async () => {
  simulator = await startSimulator({ port: 0 });
});
afterAll(() => simulator.close());

const city = {
  type: 'object',
  properties: { city: { type: 'string' }, days: { type: 'integer' } },
  required: ['city', 'days'],
  additionalProperties: false,
};
const tools = { weather: city, now: undefined };
const filled = '{"city":"text","days":1}';
const ends: Record<ProviderId, [calls: string, length: string, text: string]> = {
  openai: ['tool_calls', 'length', 'stop'],
  anthropic: ['tool_use', 'max_tokens', 'end_turn'],
  bedrock: ['tool_use', 'max_tokens', 'end_turn'],
  vertexai: ['STOP', 'MAX_TOKENS', 'STOP'],
};
const modes = providerIds.flatMap((provider) => [false, true].map((stream) => ({ provider, stream })));

describe.each(modes)('$provider, streamed: $stream,', ({ provider, stream }) => {
  const reply = (asked: Asked) => ask(simulator.url, requestOf(provider, { stream, ...asked }), provider);
  const [calls, length, text] = ends[provider];
  const history = { call: { name: 'weather', arguments: filled }, signed: [], result: 'It rains.' };

  it('calls the first tool, or the one of the choice', async () => {
    const first = { text: '', calls: [{ name: 'weather', arguments: filled }], end: calls };
    expect(await reply({ model: 'sim-tools', tools })).toMatchObject(first);
    expect(await reply({ model: 'sim-tools', tools, choice: 'required' })).toMatchObject(first);
    const named = await reply({ model: 'sim-tools', tools, choice: { name: 'now' } });
    expect(named.calls.map(({ name }) => name)).toEqual(['now']);
    if (provider === 'vertexai' || provider === 'openai') expect(named.calls[0]?.arguments).toBe('{}');
    else expect(named.pieces).toEqual([]);
  });

  it('streams arguments as its provider does', async () => {
    const { pieces } = await reply({ model: 'sim-tools', tools });
    const isWhole = !stream || provider === 'vertexai';
    if (isWhole) expect(pieces.length).toBeLessThan(2);
    else expect(pieces.slice(provider === 'bedrock' ? 0 : 1).every((piece) => piece !== '')).toBe(true);
    if (stream && (provider === 'openai' || provider === 'anthropic')) expect(pieces[0]).toBe('');
  });

  it('echoes without tools, and when the conversation ends with a result', async () => {
    expect(await reply({ model: 'sim-tools' })).toMatchObject({ calls: [], end: text });
    const after = await reply({ model: 'sim-tools', tools, history });
    expect(after).toMatchObject({ calls: [], end: text, text: expect.stringContaining('It rains.') });
  });

  it('says something and calls each tool once', async () => {
    expect(await reply({ model: 'sim-tools-parallel', tools })).toMatchObject({
      text: 'I call weather, now.',
      calls: [{ name: 'weather' }, { name: 'now' }],
      end: calls,
    });
    expect((await reply({ model: 'sim-tools-3', tools })).calls).toHaveLength(3);
  });

  it('is cut in the arguments', async () => {
    const cut = await reply({ model: 'sim-tool-cut-2', tools });
    expect(cut).toMatchObject({ text: 'I call weather.', end: length });
    const { arguments: got } = cut.calls[0] ?? {};
    if (provider === 'openai' || (stream && provider !== 'vertexai')) expect(filled).toContain(got);
    expect(got).not.toBe(filled);
  });

  it('has calls that cannot be used', async () => {
    const call = async (model: string) => (await reply({ model, tools })).calls[0];
    expect(await call('sim-tool-unknown')).toMatchObject({ name: 'not_offered' });
    expect((await call('sim-tool-nameless'))?.name).toBeUndefined();
    expect((await call('sim-tool-garbage'))?.arguments).toContain('unfinished');
  });

  it('streams arguments slowly', async () => {
    const slow = await reply({ model: 'sim-tool-slow-30-1', tools });
    const argument = JSON.parse(slow.calls[0]?.arguments ?? '') as { city: string };
    expect(argument.city.length).toBeGreaterThanOrEqual(30);
    const isInPieces = stream && provider !== 'vertexai';
    if (isInPieces) expect(slow.pieces.filter((piece) => piece !== '')).toHaveLength(30);
  });

  it('signs, takes its own signatures back, and refuses those that have changed', async () => {
    const { calls: made, signed } = await reply({ model: 'sim-tool-signed', tools });
    if (provider === 'openai') return expect(signed).toEqual([]);
    const [call] = made;
    const said = { name: call?.name ?? '', arguments: call?.arguments ?? '' };
    const again = (blocks: unknown[]) =>
      reply({ model: 'sim-tool-signed', tools, history: { ...history, call: said, signed: blocks } });
    expect(signed).toHaveLength(provider === 'vertexai' ? 1 : 3);
    expect(await again(signed)).toMatchObject({ status: 200, end: text });
    const changed = JSON.parse(JSON.stringify(signed).replace(/c2lt/, 'c2lT')) as unknown[];
    expect(await again(changed)).toMatchObject({ status: 400, text: expect.stringMatching(/signature/) });
    return undefined;
  });

  it('fills a schema with any model, unless that breaks it', async () => {
    const { text: json } = await reply({ model: 'sim-verbatim', format: city });
    expect(json).toBe(filled);
    const { text: prose } = await reply({ model: 'sim-format-broken', format: city });
    expect(prose).toContain('Simulated');
    const later = await reply({ model: 'sim-tools', tools, format: city, history });
    expect(later).toMatchObject({ text: filled, calls: [] });
  });

  it('refuses a forced choice where it always thinks', async () => {
    expect(await reply({ model: 'sim-always-thinks', tools })).toMatchObject({ status: 200 });
    const forced = await reply({ model: 'sim-always-thinks', tools, choice: 'required' });
    const isRefused = provider === 'anthropic' || provider === 'bedrock';
    expect(forced.status).toBe(isRefused ? 400 : 200);
    if (isRefused)
      expect(forced.text).toContain('tool_choice: type \\"tool\\" and \\"any\\" are not supported');
  });
});

const hints: [ProviderId, object, words: string][] = [
  [
    'openai',
    { temperature: 0.2 },
    "'temperature' does not support 0.2 with this model. Only the default (1)",
  ],
  ['openai', { reasoning_effort: 'low' }, "Unsupported parameter: 'reasoning_effort'"],
  ['openai', { verbosity: 'low' }, "Unsupported parameter: 'verbosity'"],
  ['anthropic', { output_config: { effort: 'low' } }, 'This model does not support the effort parameter'],
  ['bedrock', { inferenceConfig: { temperature: 0.2 } }, '`temperature` is deprecated for this model.'],
  ['bedrock', { inferenceConfig: { topP: 0.2 } }, '`top_p` is deprecated for this model.'],
  [
    'bedrock',
    { outputConfig: { effort: 'low' } },
    'following errors: This model does not support the effort',
  ],
  [
    'vertexai',
    { generationConfig: { thinkingConfig: { thinkingLevel: 'LOW' } } },
    'Thinking level is not supported',
  ],
  ['vertexai', { generationConfig: { seed: 1 } }, 'seed is not supported for this model.'],
];

describe('sim-no-hints', () => {
  it.each(hints)('at %s refuses %j', async (provider, change, words) => {
    const request = validRequest(provider, { model: 'sim-no-hints' });
    const refused = await ask(simulator.url, { ...request, body: { ...request.body, ...change } }, provider);
    expect(refused).toMatchObject({ status: 400, text: expect.stringContaining(words) });
    expect(await ask(simulator.url, request, provider)).toMatchObject({ status: 200 });
  });
});

const bytes = Buffer.from('iVBORw0KGgoAAAANSUhEUg==', 'base64');
const data = bytes.toString('base64');
const image = {
  ...{ type: 'image', mediaType: 'image/png', bytes: bytes.length, data },
  sha256: createHash('sha256').update(bytes).digest('hex'),
};
const args = { city: 'Rom', days: 2 };
const thinking = [{ type: 'thinking', thinking: '', signature: 's' }];
const reasoning = [{ reasoningText: { text: '', signature: 's' } }, { redactedContent: 'AA==' }];

/** A conversation with all kinds of parts, in the words of each provider, and what is read of it. */
const conversations: Record<ProviderId, { body: object; callId: string; signature?: string }> = {
  openai: {
    callId: 'c1',
    body: {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'See' },
            { type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } },
          ],
        },
        {
          role: 'assistant',
          content: 'I look.',
          tool_calls: [
            { id: 'c1', type: 'function', function: { name: 'weather', arguments: JSON.stringify(args) } },
          ],
        },
        { role: 'tool', tool_call_id: 'c1', content: '{"sun":1}' },
      ],
      tools: [
        { type: 'function', function: { name: 'weather', description: 'd', parameters: city, strict: true } },
      ],
      tool_choice: { type: 'function', function: { name: 'weather' } },
      parallel_tool_calls: false,
      response_format: { type: 'json_schema', json_schema: { name: 'f', schema: city, strict: true } },
      reasoning_effort: 'low',
    },
  },
  anthropic: {
    callId: 'c1',
    signature: JSON.stringify(thinking),
    body: {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'See' },
            { type: 'image', source: { type: 'base64', media_type: 'image/png', data } },
          ],
        },
        {
          role: 'assistant',
          content: [
            { type: 'text', text: 'I look.' },
            ...thinking,
            { type: 'tool_use', id: 'c1', name: 'weather', input: args },
          ],
        },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c1', content: '{"sun":1}' }] },
      ],
      tools: [{ name: 'weather', description: 'd', input_schema: city, strict: true }],
      tool_choice: { type: 'tool', name: 'weather', disable_parallel_tool_use: true },
      output_config: { effort: 'low', format: { type: 'json_schema', schema: city } },
    },
  },
  bedrock: {
    callId: 'c1',
    signature: JSON.stringify(reasoning),
    body: {
      messages: [
        { role: 'user', content: [{ text: 'See' }, { image: { format: 'png', source: { bytes: data } } }] },
        {
          role: 'assistant',
          content: [
            { text: 'I look.' },
            ...reasoning.map((reasoningContent) => ({ reasoningContent })),
            { toolUse: { toolUseId: 'c1', name: 'weather', input: args } },
          ],
        },
        { role: 'user', content: [{ toolResult: { toolUseId: 'c1', content: [{ text: '{"sun":1}' }] } }] },
      ],
      toolConfig: {
        tools: [
          { toolSpec: { name: 'weather', description: 'd', inputSchema: { json: city }, strict: true } },
        ],
        toolChoice: { tool: { name: 'weather' } },
      },
      outputConfig: {
        effort: 'low',
        textFormat: {
          type: 'json_schema',
          structure: { jsonSchema: { name: 'f', schema: JSON.stringify(city) } },
        },
      },
    },
  },
  vertexai: {
    callId: 'call_1',
    signature: 's',
    body: {
      contents: [
        { role: 'user', parts: [{ text: 'See' }, { inlineData: { mimeType: 'image/png', data } }] },
        {
          role: 'model',
          parts: [{ text: 'I look.' }, { functionCall: { name: 'weather', args }, thoughtSignature: 's' }],
        },
        { role: 'user', parts: [{ functionResponse: { name: 'weather', response: { sun: 1 } } }] },
      ],
      tools: [{ functionDeclarations: [{ name: 'weather', description: 'd', parametersJsonSchema: city }] }],
      toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['weather'] } },
      generationConfig: {
        responseMimeType: 'application/json',
        responseJsonSchema: city,
        thinkingConfig: { thinkingLevel: 'LOW' },
      },
    },
  },
};

describe('a call', () => {
  it.each(providerIds)('of %s is read in our words', async (provider) => {
    const { body, callId, signature: opaque } = conversations[provider];
    const request = validRequest(provider);
    const reply = await ask(simulator.url, { ...request, body: { ...request.body, ...body } }, provider);
    expect(reply).toMatchObject({ status: 200 });
    const { turns, parameters } = simulator.calls.list().at(-1) ?? {};
    expect(turns).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'See' }, image] },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'I look.' },
          ...(opaque === undefined ? [] : [{ type: 'opaque', provider, data: opaque }]),
          { type: 'tool_call', id: callId, name: 'weather', arguments: JSON.stringify(args) },
        ],
      },
      { role: 'user', content: [{ type: 'tool_result', callId, content: '{"sun":1}' }] },
    ]);
    expect(parameters).toMatchObject({
      tools: [{ name: 'weather', description: 'd', parameters: city }],
      toolChoice: { name: 'weather' },
      format: { type: 'json_schema', schema: city },
      reasoningEffort: 'low',
    });
    const isOff = provider === 'openai' || provider === 'anthropic';
    expect(parameters?.parallelToolCalls).toBe(isOff ? false : undefined);
    expect(parameters?.tools?.[0]?.strict).toBe(provider === 'vertexai' ? undefined : true);
  });

  it('of vertexai may have a text in a content of its own behind results', async () => {
    const request = validRequest('vertexai');
    const { contents } = conversations.vertexai.body as { contents: object[] };
    const body = { ...request.body, contents: [...contents, { role: 'user', parts: [{ text: 'And?' }] }] };
    expect(await ask(simulator.url, { ...request, body }, 'vertexai')).toMatchObject({ status: 200 });
  });

  it('of openai has results that follow one another in one turn', async () => {
    const request = validRequest('openai');
    const { messages } = conversations.openai.body as { messages: [object, object, object] };
    const call = (id: string) => ({ id, type: 'function', function: { name: 'weather', arguments: '{}' } });
    const result = (id: string) => ({ role: 'tool', tool_call_id: id, content: id });
    const said = { role: 'assistant', content: null, tool_calls: [call('a'), call('b')] };
    const body = { ...request.body, messages: [messages[0], said, result('a'), result('b')] };
    expect(await ask(simulator.url, { ...request, body }, 'openai')).toMatchObject({ status: 200 });
    expect(simulator.calls.list().at(-1)?.turns?.at(-1)?.content).toMatchObject([
      { type: 'tool_result', callId: 'a' },
      { type: 'tool_result', callId: 'b' },
    ]);
  });
});
