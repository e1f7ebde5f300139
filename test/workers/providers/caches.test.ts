import { describe, expect, it } from 'vitest';
import type { Turn } from '../../../shared/conversation.js';
import { type BodyOptions, toBody } from '../../../workers/providers/anthropic-body.js';
import { toInput } from '../../../workers/providers/bedrock-body.js';
import type { ProviderRequest } from '../../../workers/providers/provider.js';

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
