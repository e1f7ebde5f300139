import type { Role } from '../../../shared/contracts/contract.js';
import { type Part, type Turn, textOf } from '../../../shared/conversation.js';
import { givenFields, isObject, type JsonObject } from '../../../shared/json/json.js';
import { contentOf } from '../frames.js';
import { readImage } from '../part-rules.js';
import { schemasIn } from '../schemas.js';
import {
  type CallParameters,
  type Fault,
  firstFault,
  type PartRules,
  type Refusal,
  type Reply,
} from '../wire-format.js';
import { openAiErrors } from './errors.js';

/**
 * OpenAI's rules for tools, formats and parts, as far as both wires have them. At Responses a tool is strict unless it
 * says otherwise: https://developers.openai.com/api/docs/guides/migrate-to-responses; ids: AnswerDotAI/fastllm#45.
 */
export const partRulesOf = (isChat: boolean): PartRules => ({
  toolName: /^[a-zA-Z0-9_-]{1,64}$/,
  callId: isChat ? /^.{1,40}$/s : /^.{1,64}$/s,
  has: ['tools of a choice', 'an offered choice'],
  schema: (schema, { strict, index }) =>
    (strict ?? (index !== undefined && !isChat)) ? strictFault(schema, isChat) : undefined,
  image: (_data, _mediaType, type) => (type === undefined ? 'an image' : undefined),
  places: {
    turns: [isChat ? 'messages' : 'input'],
    choice: ['tool_choice'],
    format: isChat ? ['response_format'] : ['text', 'format'],
    tool: (index) => ['tools', index, ...(isChat ? ['function'] : [])],
    parameters: ['parameters'],
    part: () => [isChat ? 'messages' : 'input'],
  },
});

/**
 * A strict schema has no `oneOf`, and says of each of its objects that there are no other properties. At Responses each
 * of them has to be required (https://developers.openai.com/api/docs/guides/structured-outputs).
 */
const strictFault = (root: JsonObject, isChat: boolean): Fault | undefined =>
  firstFault(schemasIn(root), ({ schema, path }): Fault | undefined => {
    if (!isObject(schema)) return undefined;
    const { type, additionalProperties, properties = {}, required } = schema;
    const wrong = (words: string): Fault => [[], `${words} in context=(${path.join('.')})`];
    if ('oneOf' in schema) return wrong('no oneOf');
    if (type !== 'object') return undefined;
    if (additionalProperties !== false) return wrong('additionalProperties that are false');
    const left = Object.keys(Object(properties)).find((name) => ![required].flat().includes(name));
    return isChat || left === undefined ? undefined : wrong(`${left} to be required`);
  });

/** A tool of either wire. */
export interface Tool {
  readonly name: string;
  readonly description?: string;
  readonly strict?: boolean;
  readonly parameters?: JsonObject;
}

/** Fields that both wires have, as far as they are read. */
export interface CommonBody {
  readonly model?: string;
  readonly temperature?: number;
  readonly top_p?: number;
  readonly parallel_tool_calls?: boolean;
  readonly prompt_cache_key?: string;
}

/** A part of a message, of either wire. */
export interface MessagePart {
  readonly type?: string;
  readonly text?: string;
  readonly refusal?: string;
  readonly image_url?: string | { readonly url: string };
}

export interface OpenAiMessage {
  readonly role: string;
  readonly content?: string | readonly MessagePart[];
  readonly tool_call_id?: string;
  readonly tool_calls?: { id: string; function: { name: string; arguments: string } }[];
  readonly reasoning_content?: string;
}

/** A body of Chat Completions, as far as it is read. */
export interface OpenAiBody extends CommonBody {
  readonly messages: readonly OpenAiMessage[];
  readonly max_completion_tokens?: number;
  readonly max_tokens?: number;
  readonly stop?: string | readonly string[];
  readonly seed?: number;
  readonly frequency_penalty?: number;
  readonly presence_penalty?: number;
  readonly reasoning_effort?: string;
  readonly verbosity?: string;
  readonly tools?: { function: Tool }[];
  readonly tool_choice?: 'none' | 'auto' | 'required' | { function: { name: string } };
  readonly response_format?: {
    readonly type: 'text' | 'json_object' | 'json_schema';
    readonly json_schema?: { name: string; description?: string; strict?: boolean; schema: JsonObject };
  };
}

/** The error of Chat Completions for fields that a body cannot have together. */
export function checkOpenAiRequest(body: OpenAiBody): Refusal | undefined {
  const { tools, parallel_tool_calls: parallel, response_format: format, messages } = body;
  if (parallel != null && tools === undefined)
    return openAiErrors.wrong(['parallel_tool_calls'], 'tools beside it');
  return findJsonFault(format?.type, 'messages', messages);
}

/** The error for a format of any JSON whose conversation does not speak of it. */
export const findJsonFault = (type: string | undefined, name: string, said: unknown): Refusal | undefined =>
  type !== 'json_object' || /json/i.test(JSON.stringify(said))
    ? undefined
    : openAiErrors.wrong([name], "the word 'json'");

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
    isMarked: body.prompt_cache_key == null ? undefined : true,
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
