import type { Part, Turn } from '../../../shared/conversation.js';
import { givenFields } from '../../../shared/json/json.js';
import type { WrittenBlock } from '../blocks.js';
import { countMarked, joinThinking, type Thinking, thinkingOf, thought, writeBlocks } from '../claude.js';
import { inputOf } from '../compose.js';
import type { CallParameters, MadeCall, Reply } from '../exchange.js';
import { readImage } from '../image.js';
import type { AnthropicBlock, AnthropicBody } from './rules.js';

/** The conversation of a valid body. */
export const readAnthropicTurns = ({ system, messages }: AnthropicBody): Turn[] =>
  [...(system === undefined ? [] : [{ role: 'system', content: system } as const]), ...messages].map(
    ({ role, content }) => ({
      role,
      content: typeof content === 'string' ? content : joinThinking(content.map(readBlock)),
    }),
  );

function readBlock(block: AnthropicBlock): Part {
  const { text = '', source: { url, media_type = '', data = '' } = {}, id = '', name = '', input } = block;
  switch (block.type) {
    case 'text':
      return { type: 'text', text };
    case 'image':
      return url === undefined ? readImage(media_type, data) : { type: 'image', url };
    case 'tool_use':
      return { type: 'tool_call', id, name, arguments: JSON.stringify(input) };
    case 'tool_result': {
      const { tool_use_id: callId = '', content = '', is_error: isError } = block;
      const said = typeof content === 'string' ? content : content.map((each) => each.text).join('');
      return { type: 'tool_result', callId, content: said, ...(isError === true && { isError }) };
    }
    default:
      return thought('anthropic', block);
  }
}

/** The parameters of a valid body. */
export function readAnthropicParameters(body: AnthropicBody): CallParameters {
  const { tools, tool_choice: choice, output_config: config, thinking } = body;
  const isOff = choice?.disable_parallel_tool_use;
  return givenFields({
    maxOutputTokens: body.max_tokens,
    stop: body.stop_sequences,
    tools: tools?.map(({ name, description, input_schema: parameters, strict }) => {
      return { name, parameters, ...givenFields({ description, strict }) };
    }),
    toolChoice:
      choice &&
      ({ tool: { name: choice.name ?? '' }, any: 'required', auto: 'auto', none: 'none' } as const)[
        choice.type
      ],
    parallelToolCalls: isOff === undefined ? undefined : !isOff,
    format: config?.format,
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
