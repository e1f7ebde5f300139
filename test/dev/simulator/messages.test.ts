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
