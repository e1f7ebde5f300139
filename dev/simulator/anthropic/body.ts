import type { Part, Turn } from '../../../shared/conversation.js';
import { givenFields, type JsonObject } from '../../../shared/json/json.js';
import * as claude from '../claude.js';
import { inputOf } from '../compose.js';
import type { WrittenBlock } from '../frames.js';
import { readImage } from '../part-rules.js';
import {
  type CacheBlock,
  type CallParameters,
  type Fault,
  firstFault,
  type MadeCall,
  type PartRules,
  type Path,
  type Refusal,
  type Reply,
} from '../wire-format.js';
import { anthropicErrors, invalid } from './errors.js';

/** Anthropic's rules for tools, formats and parts. */
export const anthropicPartRules: PartRules = {
  toolName: /^[a-zA-Z0-9_-]{1,128}$/,
  callId: /^[a-zA-Z0-9_-]+$/,
  has: ['one tool of a name', 'tools of a choice', 'an offered choice', 'words in texts', 'the user last'],
  schema: claude.schemaFault,
  places: {
    turns: ['messages'],
    choice: ['tool_choice'],
    format: ['output_config', 'format', 'schema'],
    tool: (index) => ['tools', index, 'custom'],
    parameters: ['input_schema'],
    part: (turn, part) => ['messages', turn, 'content', part],
  },
};

/** A body of Messages (https://docs.anthropic.com/en/api/messages), as far as it is read. */
export interface AnthropicBody {
  readonly max_tokens: number;
  readonly stop_sequences?: string[];
  readonly system?: string | AnthropicBlock[];
  readonly tools?: AnthropicTool[];
  readonly tool_choice?: {
    type: 'auto' | 'any' | 'tool' | 'none';
    name?: string;
    disable_parallel_tool_use?: boolean;
  };
  readonly output_config?: { effort?: string; format?: { type: 'json_schema'; schema: JsonObject } };
  readonly messages: { role: 'user' | 'assistant' | 'system'; content: string | AnthropicBlock[] }[];
  readonly thinking?: { display?: string; budget_tokens?: number };
  readonly cache_control?: object;
}

interface AnthropicTool {
  readonly name: string;
  readonly description?: string;
  readonly input_schema: JsonObject;
  readonly strict?: boolean;
  /** Whether the model sees it only behind a `tool_reference`. */
  readonly defer_loading?: boolean;
  readonly cache_control?: object | null;
}

/** A block of the type that its fields belong to. */
export interface AnthropicBlock {
  readonly type: string;
  readonly text?: string;
  readonly source?: { url?: string; media_type?: string; data?: string };
  readonly id?: string;
  readonly name?: string;
  readonly input?: JsonObject;
  readonly tool_use_id?: string;
  readonly content?: string | AnthropicBlock[];
  readonly is_error?: boolean;
  readonly tool_name?: string;
  readonly cache_control?: object | null;
}

interface PlacedBlock {
  /** With its type at the end, as Anthropic names places. */
  readonly at: Path;
  readonly block: AnthropicBlock;
}

/** The blocks of a content, and behind each those of a result. */
export const blocksIn = (at: Path, content: unknown): PlacedBlock[] =>
  !Array.isArray(content)
    ? []
    : content.flatMap((block: AnthropicBlock, index) => {
        const place = [...at, index, ...(at[0] === 'system' ? [] : [block.type])];
        return [{ at: place, block }, ...blocksIn([...place, 'content'], block.content)];
      });

const retiredParameters = ['temperature', 'top_p', 'top_k'];

/** The error of newer models for a body with older parameters, or with system texts in other places. */
export function checkAnthropicRequest(body: AnthropicBody): Refusal | undefined {
  const retired = retiredParameters.find((name) => name in body);
  if (retired !== undefined) return invalid(`\`${retired}\` is deprecated for this model.`);
  const fault = firstFault(body.messages, orderFault);
  return fault && anthropicErrors.wrong(...fault);
}

/**
 * Newer models take system texts behind messages of the user, and not right before another one of the user's.
 * https://platform.claude.com/docs/en/build-with-claude/preserved-thinking/change-tools-or-instructions
 */
function orderFault(
  { role, content }: { role: string; content: string | readonly object[] },
  index: number,
  messages: readonly { role: string }[],
): Fault | undefined {
  const at = ['messages', index];
  if (isDirective(role, content)) return undefined;
  if (index === 0 && role !== 'user')
    return [at, 'a message of the user first, and the system text in `system`'];
  if (role !== 'system') return undefined;
  if (messages[index - 1]?.role !== 'user') return [at, 'a system text behind one of the user'];
  return messages[index + 1]?.role === 'user'
    ? [at, 'no message of the user behind a system text']
    : undefined;
}

/** An effort alone, which may stand anywhere: https://github.com/LeenHawk/gproxy/issues/209 */
const isDirective = (role: string, content: string | readonly object[]): boolean =>
  role === 'system' && typeof content !== 'string' && content.length === 0;

/** The conversation of a valid body. */
export const readAnthropicTurns = ({ system, messages }: AnthropicBody): Turn[] =>
  [...(system === undefined ? [] : [{ role: 'system', content: system } as const]), ...messages]
    .filter(({ role, content }) => !isDirective(role, content))
    .map(({ role, content }) => ({
      role,
      content: typeof content === 'string' ? content : claude.joinThinking(content.map(readBlock)),
    }));

/** The blocks of a valid body; a mark of the body itself is one behind all of it. */
export function readAnthropicCacheBlocks(body: AnthropicBody): CacheBlock[] {
  const { system = [], messages, cache_control: mark } = body;
  const turns = [{ role: 'system', content: system } as const, ...messages];
  const blocks = turns.flatMap(({ role, content }): CacheBlock[] =>
    typeof content === 'string'
      ? [{ role, part: { type: 'text', text: content } }]
      : content.map((block) => ({ role, part: readBlock(block), ttl: ttlOf(block.cache_control) })),
  );
  const last = blocks.length - 1;
  return blocks.map((block, place) =>
    mark != null && place === last ? { ...block, ttl: ttlOf(mark) } : block,
  );
}

const ttlOf = (mark: object | null | undefined): CacheBlock['ttl'] =>
  mark == null ? undefined : Object(mark).ttl === '1h' ? '1h' : '5m';

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
      const said = typeof content === 'string' ? content : content.map(showBlock).join('');
      return { type: 'tool_result', callId, content: said, ...(isError === true && { isError }) };
    }
    default:
      return claude.thought('anthropic', block);
  }
}

/** A block of a result in words, which may be an image or the name of a tool. */
const showBlock = ({ type, text, tool_name: named }: AnthropicBlock): string =>
  text ?? `(${named === undefined ? type : `${type} ${named}`})`;

/** The deferred tools that no result has named: the model does not know them. */
function findDeferred({ tools = [], messages }: AnthropicBody): string[] {
  const deferred = tools.flatMap(({ name, defer_loading }) => (defer_loading ? [name] : []));
  const blocks = messages.flatMap(({ content }) => blocksIn([], content));
  return deferred.filter((name) => !blocks.some(({ block }) => block.tool_name === name));
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
    deferredTools: findDeferred(body),
    toolChoice:
      choice &&
      ({ tool: { name: choice.name ?? '' }, any: 'required', auto: 'auto', none: 'none' } as const)[
        choice.type
      ],
    parallelToolCalls: isOff === undefined ? undefined : !isOff,
    format: config?.format,
    reasoningEffort: config?.effort,
    showsThinking: thinking && thinking.display === 'summarized',
    isMarked:
      body.cache_control != null ||
      claude.hasMark([body.system ?? [], ...body.messages.map(({ content }) => content)]) ||
      undefined,
  });
}

const writeThinking = (thinking: claude.Thinking) =>
  'redacted' in thinking
    ? { type: 'redacted_thinking', data: thinking.redacted }
    : { type: 'thinking', thinking: thinking.text, signature: thinking.signature };

export const anthropicSignatureOf = (call: MadeCall): string =>
  JSON.stringify(claude.thinkingOf(call).map(writeThinking));

/** A block as it is; an input is streamed as text, and other deltas come behind. */
function writeRaw(whole: JsonObject, more: readonly JsonObject[] = []): WrittenBlock {
  if (!('input' in whole)) return { whole, start: whole, deltas: more };
  const input = { type: 'input_json_delta', partial_json: JSON.stringify(whole.input) };
  return { whole, start: { ...whole, input: {} }, deltas: [input, ...more] };
}

/** https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool */
function writeSearch(query: string, id: string): WrittenBlock[] {
  const caller = { type: 'direct' };
  const page = { type: 'web_search_result', url: 'https://example.com/', title: 'Example', page_age: null };
  const content = [{ ...page, encrypted_content: 'c2lt' }];
  return [
    writeRaw({ type: 'server_tool_use', id, name: 'web_search', input: { query }, caller }),
    writeRaw({ type: 'web_search_tool_result', tool_use_id: id, caller, content }),
  ];
}

/** The blocks of a reply. */
export const writeAnthropicBlocks = (reply: Reply): WrittenBlock[] =>
  claude.writeBlocks(reply, {
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
    own: (block, place) =>
      'raw' in block
        ? [writeRaw(block.raw, block.deltas)]
        : writeSearch(block.search, `srvtoolu_sim${reply.callId}_${place}`),
  });
