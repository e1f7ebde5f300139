import type { Part, Turn } from '../../../shared/conversation.js';
import { contentOf, type WrittenBlock } from '../blocks.js';
import { hasForeignThinking, readBlocks, type Thinking, thinkingBefore } from '../claude.js';
import { inputOf } from '../compose-calls.js';
import { readImage } from '../image.js';
import { givenFields } from '../json.js';
import type { CallParameters, Reply } from '../wire-format.js';
import type { AnthropicBlock, AnthropicBody } from './shapes.js';

/** The content of a turn. */
export const readAnthropicContent = (content: string | AnthropicBlock[]): Turn['content'] =>
  typeof content === 'string'
    ? content
    : contentOf(readBlocks(content, { provider: 'anthropic', thinkingIn, read: readBlock }));

const thinkingIn = (block: AnthropicBlock): object | undefined =>
  block.type === 'thinking' || block.type === 'redacted_thinking' ? block : undefined;

function readBlock(block: AnthropicBlock): Part {
  if (block.type === 'image') {
    const { source } = block;
    return source.type === 'url'
      ? { type: 'image', url: source.url }
      : readImage(source.media_type, source.data);
  }
  if (block.type === 'tool_use') {
    return { type: 'tool_call', id: block.id, name: block.name, arguments: JSON.stringify(block.input) };
  }
  if (block.type !== 'tool_result') return { type: 'text', text: block.type === 'text' ? block.text : '' };
  const { tool_use_id: callId, content = '', is_error: isError } = block;
  const said = typeof content === 'string' ? content : content.map(({ text }) => text).join('');
  return { type: 'tool_result', callId, content: said, ...(isError === true && { isError }) };
}

/** The tools of a body, and the form of the reply that it asks for. */
export function readAnthropicTools(body: AnthropicBody): CallParameters {
  const { tools, tool_choice: choice, output_config: config } = body;
  const isOff = choice && choice.type !== 'none' ? choice.disable_parallel_tool_use : undefined;
  return {
    tools: tools?.map(({ name, description, input_schema: parameters, strict }) => {
      return { name, parameters, ...givenFields({ description, strict }) };
    }),
    toolChoice:
      choice &&
      (choice.type === 'tool' ? { name: choice.name } : choice.type === 'any' ? 'required' : choice.type),
    parallelToolCalls: isOff === undefined ? undefined : !isOff,
    format: config?.format ?? undefined,
    reasoningEffort: config?.effort,
  };
}

const writeThinking = (thinking: Thinking) =>
  'redacted' in thinking
    ? { type: 'redacted_thinking', data: thinking.redacted }
    : { type: 'thinking', thinking: thinking.text, signature: thinking.signature };

export const hasForeignAnthropicThinking = (turn: Turn): boolean => hasForeignThinking(turn, writeThinking);

/** The blocks before the text of a reply. */
export const writeAnthropicThinking = (reply: Reply): WrittenBlock[] =>
  thinkingBefore(reply).map((thinking) => {
    const whole = writeThinking(thinking);
    if ('redacted' in thinking) return { whole, start: whole, deltas: [] };
    const { text, signature } = thinking;
    const said = text === '' ? [] : [{ type: 'thinking_delta', thinking: text }];
    const start = { ...whole, thinking: '', signature: '' };
    return { whole, start, deltas: [...said, { type: 'signature_delta', signature }] };
  });

/** The blocks behind the text of a reply. */
export const writeAnthropicCalls = ({ callId, calls, ending }: Reply): WrittenBlock[] =>
  calls.map((call, index) => {
    const { name, pieces } = call;
    const id = `toolu_sim${callId}_${index}`;
    const start = { type: 'tool_use', id, name, input: {}, caller: { type: 'direct' } };
    const texts = pieces.length === 0 ? [] : ['', ...pieces];
    const deltas = texts.map((text) => ({ type: 'input_json_delta', partial_json: text }));
    return { whole: { ...start, input: inputOf(call, ending) }, start, deltas };
  });
