import { afterAll, describe, expect, it } from 'vitest';
import { startSimulator } from '../../../dev/simulator/server.js';
import { hello, raw, result, talk, turn } from '../../support/apis.js';
import { type Asked, city, requestOf, send } from './requests.js';

const simulator = await startSimulator({ port: 0 });
afterAll(() => simulator.close());

type Json = Record<string, unknown>;

/** Asks Anthropic; `more` are fields of the body. */
async function ask(more: Json, asked: Asked = {}, betas?: string) {
  const request = requestOf('anthropic', asked);
  const headers = { ...request.headers, ...(betas && { 'anthropic-beta': betas }) };
  const answer = await send(simulator.url, { ...request, headers, body: { ...request.body, ...more } });
  const text = await answer.text();
  return { status: answer.status, text, words: answer.ok ? 'taken' : JSON.parse(text).error.message };
}

const png = 'iVBORw0KGgoAAAANSUhEUg==';
const image = (media_type: string, data = png) => ({
  type: 'image',
  source: { type: 'base64', media_type, data },
});
const pdf = (data: string) => ({ ...image('application/pdf', data), type: 'document' });
const mark = { type: 'ephemeral' };
const text = { type: 'text', text: 'Hi', cache_control: mark };
const user = (...content: object[]) => ({ messages: [{ role: 'user', content }] });
const tool = { name: 'weather', input_schema: city };
const called = (...content: object[]) => ({
  messages: [
    { role: 'user', content: 'Hi' },
    { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'weather', input: {} }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content }] },
  ],
});
const found = { type: 'tool_reference', tool_name: 'weather' };

describe('Messages', () => {
  it.each<[beta: string, field: string, more: Json]>([
    ['context-management-2025-06-27', 'context_management', { context_management: { edits: [] } }],
    ['compact-2026-01-12', 'context_management', { context_management: { edits: [] } }],
    ['mcp-client-2025-11-20', 'mcp_servers', { mcp_servers: [] }],
    ['server-side-fallback-2026-07-01', 'fallbacks', { fallbacks: [] }],
    ['thinking-binding-controls-2026-08-01', 'thinking.block_binding', { thinking: { block_binding: {} } }],
    ['task-budgets-2026-03-13', 'output_config.task_budget', { output_config: { task_budget: {} } }],
    [
      'prompt-caching-scope-2026-01-05',
      'system.0.cache_control.ephemeral.scope',
      { system: [{ ...text, cache_control: { ...mark, scope: 'global' } }] },
    ],
  ])('with the beta %s -> take %s, and refuse it without', async (beta, field, more) => {
    expect((await ask(more, {}, `x-1, ${beta}`)).words).toBe('taken');
    expect(await ask(more, {}, 'x-1')).toMatchObject({
      ...{ status: 400, words: `${field}: Extra inputs are not permitted` },
    });
  });

  it.each<[words: string, more: Json]>([
    ['taken', { thinking: { type: 'enabled', budget_tokens: 1024 }, max_tokens: 1025 }],
    [
      '`max_tokens` must be greater than',
      { thinking: { type: 'enabled', budget_tokens: 1024 }, max_tokens: 1024 },
    ],
    [
      'greater than or equal to 1024',
      { thinking: { type: 'enabled', budget_tokens: 1000 }, max_tokens: 2000 },
    ],
    ['taken', user(...Array(4).fill(text))],
    ['A maximum of 4 blocks with cache_control may be provided. Found 5.', user(...Array(5).fill(text))],
    ['messages.0.content.0.thinking.cache_control: Extra', user({ ...text, type: 'thinking' })],
    ['taken', called(image('image/png'))],
    [
      'Too much media: 1 document pages + 100 images',
      user(pdf('JVBERi0='), ...Array(100).fill(image('image/png'))),
    ],
    ['messages.2.content.0.tool_result.content.0.image.source.base64: The image', called(image('image/gif'))],
    ['Could not process image', called(image('image/png', 'bm8='))],
    ['messages.0.content.0.pdf.source.base64.data: The PDF specified was not valid.', user(pdf('bm8='))],
    ['taken', user(pdf('JVBERi0xLjc='))],
    ['taken', { ...called(found), tools: [{ ...tool, defer_loading: true }] }],
    ["Tool reference 'weather' not found in available tools", called(found)],
    ['taken', { messages: [hello, { role: 'system', content: [text] }, turn('assistant', 'Hi'), hello] }],
    ['taken', { messages: [{ role: 'system', content: [], output_config: { effort: 'low' } }, hello] }],
  ])('say %j as Anthropic does: %#', async (words, more) => {
    expect((await ask(more)).words).toContain(words);
  });

  it('with deferred tools -> show the model those that a result has named', async () => {
    const tools = [{ ...tool, defer_loading: true }];
    const model = 'sim-tools';
    expect((await ask({ tools }, { model })).text).not.toContain('tool_use');
    const turns = talk(
      [raw({ type: 'tool_use', id: 'a', name: 'find', input: {} })],
      [result('a')],
      'Hi',
      'Go on',
    );
    const { messages } = requestOf('anthropic', { turns }).body as { messages: { content: unknown }[] };
    Object.assign(messages[2] ?? {}, {
      content: [{ type: 'tool_result', tool_use_id: 'a', content: [found] }],
    });
    expect((await ask({ tools, messages }, { model })).text).toContain('"name":"weather"');
    expect(simulator.calls.list().at(-1)?.turns?.[2]?.content).toMatchObject([
      { content: '(tool_reference weather)' },
    ]);
  });
});

describe('marks of what may be cached', () => {
  const usageOf = async (more: Json) => JSON.parse((await ask(more)).text).usage;
  const long = (letter: string, ttl?: string) => ({
    ...{ type: 'text', text: letter.repeat(400), ...(ttl && { cache_control: { ...mark, ttl } }) },
  });
  const counts = (read: number, written: number, for1h: number) => ({
    cache_read_input_tokens: read,
    cache_creation_input_tokens: written,
    cache_creation: { ephemeral_5m_input_tokens: written - for1h, ephemeral_1h_input_tokens: for1h },
  });

  it('at anthropic -> are each read as far as one of them stood there before', async () => {
    const system = [long('a', '1h'), long('b', '5m'), long('c')];
    const asked = (...content: object[]) => ({ system, ...user(...content) });
    expect(await usageOf(asked(long('d', '5m')))).toMatchObject({ input_tokens: 0, ...counts(0, 400, 100) });
    expect(await usageOf(asked(long('d'), long('e', '5m')))).toMatchObject(counts(400, 100, 0));
    expect(await usageOf(asked(long('f', '5m')))).toMatchObject(counts(200, 200, 0));
    expect(await usageOf({ ...asked(long('d')), system: [long('a'), long('g', '1h')] })).toMatchObject({
      ...{ input_tokens: 100, ...counts(100, 100, 100) },
    });
    expect(await usageOf({ system, ...user(long('d')), tools: [tool] })).toMatchObject(counts(0, 200, 100));
    const whole = { ...user(long('z')), cache_control: { ...mark, ttl: '1h' } };
    expect(await usageOf(whole)).toMatchObject(counts(0, 100, 100));
    expect(await usageOf({ messages: [turn('user', 'z'.repeat(400))], cache_control: mark })).toMatchObject(
      counts(100, 0, 0),
    );
  });

  it('at bedrock -> are counted, beside pictures in results, and are four at most', async () => {
    const point = { cachePoint: { type: 'default', ttl: '1h' } };
    const { path, headers, ...request } = requestOf('bedrock', {
      tools: [{ name: 'weather', description: 'd' }],
    });
    const picture = { image: { format: 'png', source: { bytes: png } } };
    const answer = async (...system: object[]) => {
      const messages = [
        { role: 'user', content: [{ text: 'Hi' }, point] },
        { role: 'assistant', content: [{ toolUse: { toolUseId: 'a', name: 'weather', input: {} } }] },
        {
          role: 'user',
          content: [{ toolResult: { toolUseId: 'a', content: [{ text: 'See ' }, picture] } }, point],
        },
      ];
      const body = { ...request.body, system, messages };
      return JSON.parse(await (await send(simulator.url, { ...request, path, headers, body })).text());
    };
    const system = [{ text: 'a'.repeat(400) }, point];
    const [first, second] = [(await answer(...system)).usage, (await answer(...system)).usage];
    expect([first.inputTokens, first.cacheReadInputTokens, first.cacheWriteInputTokens > 100]).toEqual([
      0,
      0,
      true,
    ]);
    expect(second.cacheReadInputTokens).toBe(first.cacheWriteInputTokens);
    const { turns } = simulator.calls.list().at(-1) ?? {};
    expect(turns?.at(-1)?.content).toMatchObject([{ type: 'tool_result', content: 'See (image)' }]);
    expect((await answer({ text: 'a' }, point, { text: 'b' }, point, { text: 'c' }, point)).message).toBe(
      'The model returned the following errors: A maximum of 4 blocks with cache_control may be provided. Found 5.',
    );
  });
});
