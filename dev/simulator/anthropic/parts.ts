import { type Part, type Turn, textOf } from '../../../shared/conversation.js';
import { givenFields } from '../../../shared/json/json.js';
import type { WrittenBlock } from '../blocks.js';
import { countMarked, joinThinking, type Thinking, thinkingOf, thought, writeBlocks } from '../claude.js';
import { inputOf } from '../compose.js';
import type { CallParameters, Reply } from '../exchange.js';
import { readImage } from '../image.js';
import type { MadeCall } from '../signature.js';
import type { AnthropicBlock, AnthropicBody } from './rules.js';

/** The conversation of a valid body. */
export const readAnthropicTurns = ({ system, messages }: AnthropicBody): Turn[] =>
  [...(system === undefined ? [] : [{ role: 'system' as const, content: system }]), ...messages].map(
    ({ role, content }) => ({
      role,
      content: typeof content === 'string' ? content : joinThinking(content.map(readBlock)),
    }),
  );

function readBlock(block: AnthropicBlock): Part {
  switch (block.type) {
    case 'text':
      return { type: 'text', text: block.text };
    case 'image': {
      const { source } = block;
      if (source.type === 'url') return { type: 'image', url: source.url };
      return readImage(source.media_type, source.data);
    }
    case 'tool_use':
      return { type: 'tool_call', id: block.id, name: block.name, arguments: JSON.stringify(block.input) };
    case 'tool_result': {
      const { tool_use_id: callId, content = '', is_error: isError } = block;
      return {
        type: 'tool_result',
        callId,
        content: textOf({ content }),
        ...(isError === true && { isError }),
      };
    }
    default:
      return thought('anthropic', block);
  }
}

/** The parameters of a valid body. */
export function readAnthropicParameters(body: AnthropicBody): CallParameters {
  const { tools, tool_choice: choice, output_config: config, thinking } = body;
  const isOff = choice && choice.type !== 'none' ? choice.disable_parallel_tool_use : undefined;
  return givenFields({
    maxOutputTokens: body.max_tokens,
    stop: body.stop_sequences,
    tools: tools?.map(({ name, description, input_schema: parameters, strict }) => {
      return { name, parameters, ...givenFields({ description, strict }) };
    }),
    toolChoice:
      choice &&
      (choice.type === 'tool' ? { name: choice.name } : choice.type === 'any' ? 'required' : choice.type),
    parallelToolCalls: isOff === undefined ? undefined : !isOff,
    format: config?.format ?? undefined,
    reasoningEffort: config?.effort,
    showsThinking: thinking && thinking.display === 'summarized',
    // A mark of the body is one behind all of it; marks of tools alone have no turns.
    markedTurns: body.cache_control
      ? Infinity
      : countMarked([body.system ?? [], ...body.messages.map(({ content }) => content)]),
  });
}

const writeThinking = (thinking: Thinking) =>
  'redacted' in thinking
    ? { type: 'redacted_thinking', data: thinking.redacted }
    : { type: 'thinking', thinking: thinking.text, signature: thinking.signature };

export const anthropicSignatureOf = (call: MadeCall): string =>
  JSON.stringify(thinkingOf(call).map(writeThinking));

/** The blocks of a reply. */
export const writeAnthropicBlocks = (reply: Reply): WrittenBlock[] =>
  writeBlocks(reply, {
    thinking(thinking) {
      const whole = writeThinking(thinking);
      if ('redacted' in thinking) return { whole, start: whole, deltas: [] };
      const { text, signature } = thinking;
      const words = text === '' ? [] : [{ type: 'thinking_delta', thinking: text }];
      const start = { ...whole, thinking: '', signature: '' };
      return { whole, start, deltas: [...words, { type: 'signature_delta', signature }] };
    },
    text(text, pieces) {
      const start = { type: 'text', text: '', citations: null };
      const deltas = pieces.map((piece) => ({ type: 'text_delta', text: piece }));
      return { whole: { ...start, text }, start, deltas };
    },
    call(call, index) {
      const { name, pieces } = call;
      const id = `toolu_sim${reply.callId}_${index}`;
      const start = { type: 'tool_use', id, name, input: {}, caller: { type: 'direct' } };
      const texts = pieces.length === 0 ? [] : ['', ...pieces];
      const deltas = texts.map((text) => ({ type: 'input_json_delta', partial_json: text }));
      return { whole: { ...start, input: inputOf(call, reply.ending) }, start, deltas };
    },
  });
