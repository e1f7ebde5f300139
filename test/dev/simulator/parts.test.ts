import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Simulator, startSimulator } from '../../../dev/simulator/server.js';
import { type ProviderId, providerIds } from '../../../shared/contract.js';
import { ask } from './replies.js';
import { type Asked, city, everything, modes, requestOf, type SaidPart } from './requests.js';

let simulator: Simulator;
beforeAll(async () => {
  simulator = await startSimulator({ port: 0 });
});
afterAll(() => simulator.close());

const tools = [{ name: 'weather', parameters: city }, { name: 'now' }];
const filled = '{"city":"text","days":1}';
const ends: Record<ProviderId, [calls: string, length: string, text: string]> = {
  openai: ['tool_calls', 'length', 'stop'],
  anthropic: ['tool_use', 'max_tokens', 'end_turn'],
  bedrock: ['tool_use', 'max_tokens', 'end_turn'],
  vertexai: ['STOP', 'MAX_TOKENS', 'STOP'],
};
const call: SaidPart = { type: 'tool_call', id: 'c1', name: 'weather', arguments: filled };
const history = (...before: SaidPart[]) => [
  { role: 'user', content: 'Hello' },
  { role: 'assistant', content: [...before, call] },
  { role: 'user', content: [{ type: 'tool_result', callId: 'c1', content: 'It rains.' } as const] },
];

describe.each(modes)('$provider, streamed: $stream', ({ provider, stream }) => {
  const reply = (model: string, asked: Asked = { tools }) =>
    ask(simulator.url, requestOf(provider, { model, stream, ...asked }), provider);
  const [calls, length, text] = ends[provider];
  const isInPieces = stream && provider !== 'vertexai';

  it('sim-tools -> calls the first tool or the chosen one, streamed as the provider does', async () => {
    const first = { text: '', calls: [{ name: 'weather', arguments: filled }], end: calls };
    const { pieces, ...called } = await reply('sim-tools');
    expect(called).toMatchObject(first);
    if (!isInPieces) expect(pieces.length).toBeLessThan(2);
    else expect(pieces.slice(provider === 'bedrock' ? 0 : 1).every((piece) => piece !== '')).toBe(true);
    if (isInPieces && provider !== 'bedrock') expect(pieces[0]).toBe('');
    expect(await reply('sim-tools', { tools, choice: 'required' })).toMatchObject(first);
    const named = await reply('sim-tools', { tools, choice: { name: 'now' } });
    expect(named.calls.map(({ name }) => name)).toEqual(['now']);
    if (provider === 'vertexai' || provider === 'openai') expect(named.calls[0]?.arguments).toBe('{}');
    else expect(named.pieces).toEqual([]);
  });

  it('sim-tools without tools, or of a conversation that ends with a result -> is an echo', async () => {
    expect(await reply('sim-tools', {})).toMatchObject({ calls: [], end: text });
    const after = await reply('sim-tools', { tools, turns: history() });
    expect(after).toMatchObject({ calls: [], end: text, text: expect.stringContaining('It rains.') });
  });

  it('models of many, cut, slow and unusable calls -> make them', async () => {
    expect(await reply('sim-tools-parallel')).toMatchObject({
      ...{ text: 'I call weather, now.', calls: [{ name: 'weather' }, { name: 'now' }], end: calls },
    });
    expect((await reply('sim-tools-3')).calls).toHaveLength(3);
    const cut = await reply('sim-tool-cut-2');
    expect(cut).toMatchObject({ text: 'I call weather.', end: length });
    const { arguments: got } = cut.calls[0] ?? {};
    if (provider === 'openai' || isInPieces) expect(filled).toContain(got);
    expect(got).not.toBe(filled);
    const slow = await reply('sim-tool-slow-30-1');
    expect(JSON.parse(slow.calls[0]?.arguments ?? '').city.length).toBeGreaterThanOrEqual(30);
    if (isInPieces) expect(slow.pieces.filter((piece) => piece !== '')).toHaveLength(30);
    const made = async (model: string) => (await reply(model)).calls[0];
    expect(await made('sim-tool-unknown')).toMatchObject({ name: 'not_offered' });
    expect((await made('sim-tool-nameless'))?.name).toBeUndefined();
    expect((await made('sim-tool-garbage'))?.arguments).toContain('unfinished');
  });

  it('sim-tool-signed -> signs, takes its own signatures back, and refuses changed ones', async () => {
    const { calls: made, signed } = await reply('sim-tool-signed');
    expect(made).toMatchObject([{ name: 'weather', arguments: filled }]);
    const written = provider === 'vertexai' ? String(signed[0]) : JSON.stringify(signed);
    const again = (data: string) =>
      reply('sim-tool-signed', { tools, turns: history({ type: 'opaque', provider, data }) });
    expect(signed).toHaveLength({ openai: 0, anthropic: 3, bedrock: 3, vertexai: 1 }[provider]);
    expect(await again(written)).toMatchObject({ status: 200, end: text });
    const changed = await again(written.replace(/c2lt/, 'c2lT'));
    if (provider === 'openai') expect(changed.status).toBe(200);
    else expect(changed).toMatchObject({ status: 400, text: expect.stringMatching(/signature/) });
  });

  it('a format -> is filled by any model, unless that breaks it', async () => {
    expect((await reply('sim-verbatim', { format: city })).text).toBe(filled);
    expect((await reply('sim-format-broken', { format: city })).text).toContain('Simulated');
    const later = await reply('sim-tools', { tools, format: city, turns: history() });
    expect(later).toMatchObject({ text: filled, calls: [] });
  });

  it('sim-always-thinks -> refuses a forced choice where Claude does', async () => {
    expect(await reply('sim-always-thinks')).toMatchObject({ status: 200 });
    const forced = await reply('sim-always-thinks', { tools, choice: 'required' });
    const isRefused = provider === 'anthropic' || provider === 'bedrock';
    expect(forced.status).toBe(isRefused ? 400 : 200);
    if (isRefused) expect(forced.text).toContain('tool_choice: type \\"tool\\" and \\"any\\" are not supp');
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

it.each(hints)('sim-no-hints at %s -> refuses %j', async (provider, change, words) => {
  const request = requestOf(provider, { model: 'sim-no-hints' });
  const refused = await ask(simulator.url, { ...request, body: { ...request.body, ...change } }, provider);
  expect(refused).toMatchObject({ status: 400, text: expect.stringContaining(words) });
  expect(await ask(simulator.url, request, provider)).toMatchObject({ status: 200 });
});

describe('a call', () => {
  it.each(providerIds)('of %s with everything -> is read in our words', async (provider) => {
    const asked = everything(provider);
    expect(await ask(simulator.url, requestOf(provider, asked), provider)).toMatchObject({ status: 200 });
    const { turns, parameters } = simulator.calls.list().at(-1) ?? {};
    expect(turns).toEqual(asked.turns);
    expect(parameters).toMatchObject({
      ...{ tools: asked.tools, toolChoice: asked.choice, reasoningEffort: 'low' },
      format: { type: 'json_schema', schema: city },
    });
    expect(parameters?.parallelToolCalls).toBe(asked.isParallel);
  });

  it('of vertexai -> may have a text in a content of its own behind results', async () => {
    const turns = [...everything('vertexai').turns, { role: 'user', content: 'And?' }];
    const request = requestOf('vertexai', { turns });
    expect(await ask(simulator.url, request, 'vertexai')).toMatchObject({ status: 200 });
  });

  it('of openai -> has results that follow one another in one turn', async () => {
    const results = ['a', 'b'].map((callId): SaidPart => ({ type: 'tool_result', callId, content: callId }));
    const turns = [
      { role: 'user', content: 'Hello' },
      { role: 'assistant', content: ['a', 'b'].map((id): SaidPart => ({ ...call, id })) },
      { role: 'user', content: results },
    ];
    expect(await ask(simulator.url, requestOf('openai', { turns }), 'openai')).toMatchObject({ status: 200 });
    expect(simulator.calls.list().at(-1)?.turns).toEqual(turns);
  });
});
