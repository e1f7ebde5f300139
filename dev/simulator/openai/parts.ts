import type { Role } from '../../../shared/contracts/contract.js';
import { type Part, type Turn, textOf } from '../../../shared/conversation.js';
import { givenFields } from '../../../shared/json/json.js';
import { contentOf } from '../blocks.js';
import type { CallParameters, Reply } from '../exchange.js';
import { readImage } from '../image.js';
import type { MessagePart, OpenAiBody, OpenAiMessage } from './rules.js';

const roleNames: Record<string, Role> = { system: 'system', developer: 'system', assistant: 'assistant' };

/** The conversation of items, some of which go on with the turn of the one before. */
export function joinTurns(items: readonly { role: string; parts: Part[]; isMore: boolean }[]): Turn[] {
  const turns: { role: Role; parts: Part[] }[] = [];
  for (const { role, parts, isMore } of items) {
    if (isMore) turns.at(-1)?.parts.push(...parts);
    else turns.push({ role: roleNames[role] ?? 'user', parts });
  }
  return turns.map(({ role, parts }) => ({ role, content: contentOf(parts) }));
}

/** The conversation of valid messages; results that follow one another are one turn. */
export const readOpenAiTurns = ({ messages }: OpenAiBody): Turn[] =>
  joinTurns(
    messages.map((message, index) => {
      const isMore = message.role === 'tool' && messages[index - 1]?.role === 'tool';
      return { role: message.role, parts: readMessage(message), isMore };
    }),
  );

function readMessage(message: OpenAiMessage): Part[] {
  const { role, content, tool_call_id: callId = '', reasoning_content, tool_calls } = message;
  const parts = readContent(content);
  if (role === 'tool') return [{ type: 'tool_result', callId, content: textOf({ content: parts }) }];
  const data = JSON.stringify({ reasoning_content });
  if (reasoning_content != null) parts.unshift({ type: 'opaque', provider: 'openai', data });
  const calls = tool_calls?.map(({ id, function: called }): Part => ({ type: 'tool_call', id, ...called }));
  return [...parts, ...(calls ?? [])];
}

export const readContent = (content: string | readonly MessagePart[] | null | undefined): Part[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : (content ?? []).map(readPart);

function readPart({ text = '', refusal, image_url: image }: MessagePart): Part {
  if (image === undefined) return { type: 'text', text: refusal ?? text };
  const url = typeof image === 'string' ? image : image.url;
  if (!url.startsWith('data:')) return { type: 'image', url };
  const end = url.indexOf(',');
  return readImage(url.slice('data:'.length, end).replace(/;base64$/, ''), url.slice(end + 1));
}

/** The parameters of a valid body. */
export function readOpenAiParameters(body: OpenAiBody): CallParameters {
  const { stop, tools, tool_choice: choice, response_format: format } = body;
  return givenFields({
    maxOutputTokens: body.max_completion_tokens ?? body.max_tokens,
    temperature: body.temperature,
    topP: body.top_p,
    stop: typeof stop === 'string' ? [stop] : stop,
    seed: body.seed,
    frequencyPenalty: body.frequency_penalty,
    presencePenalty: body.presence_penalty,
    reasoningEffort: body.reasoning_effort,
    verbosity: body.verbosity,
    tools: tools?.map(({ function: { name, ...tool } }) => ({ name, ...givenFields(tool) })),
    toolChoice: typeof choice === 'object' ? choice.function : choice,
    parallelToolCalls: body.parallel_tool_calls,
    format:
      format && format.type !== 'text'
        ? { type: format.type, ...givenFields(format.json_schema ?? {}) }
        : undefined,
    markedTurns: body.prompt_cache_key == null ? undefined : Infinity,
  });
}

const idOf = (reply: Reply, index: number): string => `call_sim${reply.callId}_${index}`;

/** The calls of a whole message. */
export const writeOpenAiCalls = (reply: Reply): object[] =>
  reply.calls.map(({ name, arguments: whole }, index) => {
    return { id: idOf(reply, index), type: 'function', function: { name, arguments: whole } };
  });

/** The deltas of a stream for the calls. A call's head comes with its first piece. */
export const writeOpenAiCallDeltas = (reply: Reply): object[][] =>
  reply.calls.flatMap(({ name, arguments: whole, pieces }, index) => {
    const head = { index, id: idOf(reply, index), type: 'function', function: { name, arguments: '' } };
    const texts = pieces.length === 0 && whole !== '' ? [whole] : pieces;
    const [first = [], ...rest] = texts.map((text) => [{ index, function: { arguments: text } }]);
    return [[head, ...first], ...rest].map((calls) => calls.map((call) => ({ tool_calls: [call] })));
  });
