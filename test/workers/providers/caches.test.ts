import { describe, expect, it, onTestFinished } from 'vitest';
import { startSimulator } from '../../../dev/simulator/server.js';
import type { Part, Turn } from '../../../shared/conversation.js';
import { type BodyOptions, toBody } from '../../../workers/providers/anthropic/anthropic-body.js';
import { toInput } from '../../../workers/providers/bedrock/bedrock-body.js';
import { HttpClient } from '../../../workers/providers/http/http-client.js';
import { toBody as toResponsesBody } from '../../../workers/providers/openai/responses-body.js';
import type { ProviderRequest } from '../../../workers/providers/provider.js';
import { loadProvider } from '../../../workers/providers/provider-settings.js';

const { signal } = new AbortController();
const hello: Turn = { role: 'user', content: 'Hello' };
const hi: Turn = { role: 'assistant', content: 'Hi' };
const brief: Turn = { role: 'system', content: 'Be brief.' };
const tools = [{ name: 'weather' }];
const called: Turn[] = [
  { role: 'assistant', content: [{ type: 'tool_call', id: 'a', name: 'weather', arguments: '{}' }] },
  { role: 'user', content: [{ type: 'tool_result', callId: 'a', content: 'sun' }] },
];
const ask = (own: Partial<ProviderRequest>): ProviderRequest => ({
  turns: [hello],
  model: 'm',
  signal,
  ...own,
});

describe('a request of Anthropic', () => {
  const markOf = (own: Partial<ProviderRequest>, options: BodyOptions) =>
    toBody(ask(own), options).cache_control;

  it.each<[string, Partial<ProviderRequest>]>([
    ['with tools', { parameters: { tools } }],
    ['with earlier turns', { turns: [hello, hi, hello] }],
  ])('%s -> is cached, for minutes or an hour, unless the model has refused that', (_, own) => {
    expect(markOf(own, { promptCache: 'auto' })).toEqual({ type: 'ephemeral' });
    expect(markOf(own, { promptCache: '1h' })).toEqual({ type: 'ephemeral', ttl: '1h' });
    const omits = new Set(['cache'] as const);
    const off = [markOf(own, {}), markOf(own, { promptCache: 'off' })];
    expect([...off, markOf({ ...own, omits }, { promptCache: 'auto' })]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  });

  it('that is a single question -> is not', () => {
    expect(markOf({ turns: [brief, hello] }, { promptCache: 'auto' })).toBeUndefined();
  });
});

describe('a request of Bedrock', () => {
  const claude = 'us.anthropic.claude-opus-5';
  const profile = 'arn:aws:bedrock:eu-central-1:1:inference-profile/eu.amazon.nova-pro-v1:0';
  const [marked, agents] = [{ cachePoint: { type: 'default' } }, { parameters: { tools } }];

  /** Behind which fields of the request a mark stands, with the roles of messages. */
  function marksOf(own: Partial<ProviderRequest>, promptCache: 'off' | 'auto' = 'auto'): string {
    const { toolConfig, system, messages = [] } = toInput(ask(own), { promptCache });
    const places = [
      ['tools', toolConfig?.tools],
      ['system', system],
      ...messages.map(({ role, content }, place) => [`${role} ${place}`, content]),
    ] as [string, object[] | undefined][];
    for (const [, blocks = []] of places) expect(blocks.slice(0, -1)).not.toContainEqual(marked);
    return places.flatMap(([name, blocks]) => ('cachePoint' in (blocks?.at(-1) ?? {}) ? [name] : [])).join();
  }

  it.each<[string, Partial<ProviderRequest>, marks: string]>([
    ['of Claude, with tools', { ...agents, model: claude, turns: [brief, hello] }, 'tools,system,user 0'],
    ['of Claude, with earlier turns', { model: claude, turns: [hello, hi, hello] }, 'user 2'],
    ['of Claude, behind results', { ...agents, model: claude, turns: [hello, ...called] }, 'tools,user 2'],
    ['of Nova, with tools', { ...agents, model: profile, turns: [brief, hello] }, 'system,user 0'],
    ['of Nova, behind results', { ...agents, model: profile, turns: [brief, hello, ...called] }, 'system'],
    ['of another model', { ...agents, model: 'meta.llama4-supernova' }, ''],
    ['that is a single question', { model: claude, turns: [brief, hello] }, ''],
    ['whose model has refused it', { ...agents, model: claude, omits: new Set(['cache']) }, ''],
  ])('%s -> has its marks behind what that model caches: %#', (_, own, marks) => {
    expect(marksOf(own)).toBe(marks);
    expect(marksOf(own, 'off')).toBe('');
  });
});

describe("a request of Bedrock with the caller's own marks", () => {
  const said = (text: string, cache?: '5m' | '1h'): Part => ({ type: 'text', text, ...(cache && { cache }) });
  const point = (ttl?: '1h') => ({ cachePoint: { type: 'default', ...(ttl && { ttl }) } });
  const marked: Partial<ProviderRequest> = {
    parameters: { tools: [{ name: 'weather', cache: '1h' }, { name: 'clock' }] },
    turns: [
      { role: 'system', content: 'a' },
      { role: 'system', content: [said('b', '1h')] },
      { role: 'user', content: [said('Hello'), said('And?', '5m')] },
      {
        role: 'assistant',
        content: [{ type: 'tool_call', id: 'a', name: 'weather', arguments: '{}', cache: '5m' }],
      },
      { role: 'user', content: [{ type: 'tool_result', callId: 'a', content: 'sun', cache: '5m' }] },
    ],
  };
  /** The marks, and in the place of other blocks the names of their fields. */
  function shapeOf(own: Partial<ProviderRequest>) {
    const {
      toolConfig,
      system,
      messages = [],
    } = toInput(ask({ ...marked, ...own }), { promptCache: 'auto' });
    const shape = (blocks: object[] = []) =>
      blocks.map((block) => ('cachePoint' in block ? block : Object.keys(block).join()));
    return [toolConfig?.tools, system, ...messages.map(({ content }) => content)].map(shape);
  }

  it('of Claude -> has the first four of them, with their time, and none of ours', () => {
    expect(shapeOf({ model: 'us.anthropic.claude-opus-5' })).toEqual([
      ['toolSpec', point('1h'), 'toolSpec'],
      ['text', 'text', point('1h')],
      ['text', 'text', point()],
      ['toolUse', point()],
      ['toolResult'],
    ]);
  });

  it('of Nova -> has those behind texts; of another model, or one that refused them -> none', () => {
    const bare = [['toolSpec', 'toolSpec'], ['text', 'text'], ['text', 'text'], ['toolUse'], ['toolResult']];
    expect(shapeOf({ model: 'amazon.nova-pro-v1:0' })).toEqual([
      ['toolSpec', 'toolSpec'],
      ['text', 'text', point('1h')],
      ['text', 'text', point()],
      ['toolUse'],
      ['toolResult'],
    ]);
    expect(shapeOf({ model: 'meta.llama4' })).toEqual(bare);
    expect(shapeOf({ model: 'us.anthropic.claude-opus-5', omits: new Set(['cache']) })).toEqual(bare);
  });
});

it.each<[string, Partial<ProviderRequest>, fields: object | undefined]>([
  ['thinking as it likes', { parameters: { thinking: 'adaptive' } }, { thinking: { type: 'adaptive' } }],
  ['a budget', { parameters: { thinking: 2048 } }, { thinking: { type: 'enabled', budget_tokens: 2048 } }],
  [
    'a budget above the limit, in words',
    { parameters: { thinking: 2048 }, maxOutputTokens: 2000, asksThinking: true },
    { thinking: { type: 'enabled', budget_tokens: 1999, display: 'summarized' } },
  ],
  ['likeliest tokens', { parameters: { topK: 40 } }, { top_k: 40 }],
  ['nothing', {}, undefined],
])('a request of Claude at Bedrock with %s -> has it in the words of Anthropic', (_, own, fields) => {
  const { additionalModelRequestFields } = toInput(ask({ ...own, model: 'us.anthropic.claude-opus-5' }));
  expect(additionalModelRequestFields).toEqual(fields);
});

describe('a request of OpenAI', () => {
  it('-> has the key of what may be cached, shortened where OpenAI would refuse it', () => {
    const keyOf = (cacheKey?: string) => toResponsesBody(ask({ cacheKey })).prompt_cache_key;
    const keys = ['k', 'é'.repeat(64), 'k'.repeat(65)].map(keyOf);
    expect(keys).toEqual(['k', 'é'.repeat(64), expect.stringMatching(/^c_[\w-]{22}$/)]);
    expect(toResponsesBody(ask({}))).not.toHaveProperty('prompt_cache_key');
  });
});

describe('a conversation whose beginning is cached', () => {
  const key = { apiKey: 'test-key' };
  const setups = {
    openai: (url: string) =>
      loadProvider('openai', { ...key, baseUrl: `${url}/v1`, wire: 'responses' }, new HttpClient(65_536)),
    anthropic: (baseUrl: string) =>
      loadProvider('anthropic', { ...key, baseUrl, promptCache: 'auto' }, new HttpClient(65_536)),
    bedrock: (endpoint: string) => {
      const credentials = { accessKeyId: 'test-id', secretAccessKey: 'test-key' };
      return loadProvider(
        'bedrock',
        { region: 'r', endpoint, credentials, promptCache: 'auto' },
        new HttpClient(65_536),
      );
    },
  };

  it.each(['openai', 'anthropic', 'bedrock'] as const)(
    '%s -> writes it, and reads it when it goes on',
    async (id) => {
      const simulator = await startSimulator({ port: 0 });
      const provider = await setups[id](simulator.url);
      onTestFinished(async () => {
        provider.close();
        await simulator.close();
      });
      const model = 'sim-echo@claude';
      const usageOf = async (turns: Turn[]) => {
        const { usage } = await provider.run(ask({ model, turns, parameters: { tools }, cacheKey: 'k' }));
        return { read: usage?.cachedTokens, written: usage?.cacheWriteTokens };
      };
      const first = await usageOf([brief, hello]);
      expect(first).toEqual({ read: 0, written: expect.any(Number) });
      expect(first.written).toBeGreaterThan(0);
      expect(await usageOf([brief, hello, hi, hello])).toEqual({
        read: first.written,
        written: expect.any(Number),
      });
    },
  );
});
