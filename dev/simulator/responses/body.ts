import { type Part, type Turn, textOf } from '../../../shared/conversation.js';
import { givenFields, type JsonObject } from '../../../shared/json/json.js';
import {
  type CommonBody,
  commonShape,
  efforts,
  findJsonFault,
  findOptionsFault,
  imageUrl,
  joinTurns,
  type MessagePart,
  readContent,
  verbosities,
} from '../openai/body.js';
import { openAiError, openAiErrors } from '../openai/errors.js';
import * as must from '../shape.js';
import { type CallParameters, firstFault, type Refusal } from '../wire-format.js';
import { seal } from './items.js';

interface ResponsesTool {
  readonly type: string;
  readonly name: string;
  readonly description?: string;
  readonly strict?: boolean;
  readonly parameters?: JsonObject;
}

/** An item of the type that its fields belong to; one with a role is a message. */
export interface ResponsesItem {
  readonly type?: string;
  readonly role?: string;
  readonly content?: string | readonly MessagePart[];
  readonly id?: string;
  readonly call_id?: string;
  readonly name?: string;
  readonly arguments?: string;
  readonly output?: string | readonly MessagePart[];
  readonly summary?: readonly { text: string }[];
  readonly encrypted_content?: string;
}

/** A body of Responses, as far as it is read (`ResponseCreateParamsBase` of OpenAI's SDK). */
export interface ResponsesBody extends CommonBody {
  readonly input: string | readonly ResponsesItem[];
  readonly instructions?: string;
  readonly include?: readonly string[];
  readonly max_output_tokens?: number;
  readonly reasoning?: { effort?: string; summary?: string };
  readonly text?: {
    readonly format?: {
      type: 'text' | 'json_object' | 'json_schema';
      name?: string;
      strict?: boolean;
      schema?: JsonObject;
    };
    readonly verbosity?: string;
  };
  readonly tools?: readonly ResponsesTool[];
  readonly tool_choice?: 'none' | 'auto' | 'required' | { name: string };
}

/** Not in it are stops, a seed, penalties and biases: Responses has none. */
const shape: must.Shape = {
  '': must.object(`model input instructions stream stream_options temperature top_p parallel_tool_calls
    prompt_cache_key store include max_output_tokens reasoning text tools tool_choice access_programs background
    context_management conversation image max_tool_calls metadata moderation previous_response_id prompt
    prompt_cache_options prompt_cache_retention safety_identifier service_tier top_logprobs truncation user`),
  ...commonShape,
  'include.*!': must.oneOf('reasoning.encrypted_content message.output_text.logprobs'),
  // The least is 16: https://github.com/earendil-works/pi/issues/6265
  max_output_tokens: must.integer(16),
  reasoning: must.object('effort summary context mode'),
  'reasoning.effort': efforts,
  'reasoning.summary': must.oneOf('auto concise detailed'),
  'text.verbosity': verbosities,
  'text.format.type!': must.oneOf('text json_object json_schema'),
  'tools.*!': must.object('type name description strict parameters'),
  tool_choice: must.oneOfOr('none auto required'),
  'input!': must.texts(1),
  'input.*!': must.object(`type role content id status call_id name arguments output summary encrypted_content
    phase`),
  'input.*.type': must.oneOf('message function_call function_call_output reasoning'),
  'input.*.role': must.oneOf('system developer user assistant'),
  'input.*.status': must.oneOf('in_progress completed incomplete'),
  'input.*.phase': must.oneOf('commentary final_answer'),
  'input.*.content': must.texts(1),
  'input.*.content.*.type!': must.oneOf('input_text output_text refusal input_image'),
  'input.*.content.*.image_url': imageUrl,
  'input.*.output': must.texts(1),
  'input.*.output.*.type!': must.oneOf('input_text input_image'),
};

/** The fields that an item of a type has to have. */
const needed: Readonly<Record<string, readonly string[]>> = {
  message: ['role', 'content'],
  function_call: ['call_id', 'name', 'arguments'],
  function_call_output: ['call_id', 'output'],
  reasoning: ['summary'],
};

/**
 * The error for the first rule of Responses that a body violates. Two are stricter than the provider: no item may have
 * an id, and an image needs its `detail`, as in the types.
 */
export function checkResponsesRequest(body: JsonObject): Refusal | undefined {
  const fault = must.findFault(body, shape);
  if (fault !== undefined) return openAiErrors.wrong(...fault);
  const asked = body as unknown as ResponsesBody;
  const { input, model = '', text } = asked;
  const items = typeof input === 'string' ? [] : input;
  const other = findOptionsFault(asked) ?? findJsonFault(text?.format?.type, 'input', input);
  if (other !== undefined) return openAiErrors.wrong(...other);
  return firstFault(
    items,
    (item, index) => checkItem(item, index) ?? checkStored(item) ?? checkSeal(item, model),
  );
}

function checkItem(item: ResponsesItem, index: number): Refusal | undefined {
  const missing = needed[item.type ?? 'message']?.find((name) => !(name in item));
  if (missing !== undefined) return openAiErrors.wrong(['input', index, missing], 'a value');
  const parts = [item.content, item.output].flat().filter((part) => typeof part === 'object');
  const isBare = parts.some((part) => part.type === 'input_image' && !('detail' in part));
  return isBare ? openAiErrors.wrong(['input', index, 'content'], 'a detail of each image') : undefined;
}

/** An item with an id stands for one that the provider has kept; here it keeps none (vercel/ai#7543, oh-my-pi#41). */
function checkStored({ id }: ResponsesItem): Refusal | undefined {
  if (id == null) return undefined;
  const why = 'Items are not persisted when `store` is set to false.';
  const how = 'Try again with `store` set to true, or remove this item from your input.';
  return openAiError(404, `Item with id '${id}' not found. ${why} ${how}`, { param: 'input' });
}

/** Reasoning comes back as it was given, to the model that gave it (openai/codex#8145, Wei-Shaw/sub2api#2863). */
function checkSeal({ type, summary = [], encrypted_content: sent = '' }: ResponsesItem, model: string) {
  if (type !== 'reasoning' || sent === seal(model, summary)) return undefined;
  const shown = `${String(sent).slice(0, 4)}...${String(sent).slice(-4)}`;
  const why = 'could not be verified. Reason: Encrypted content could not be decrypted or parsed.';
  return openAiError(400, `The encrypted content ${shown} ${why}`, { code: 'invalid_encrypted_content' });
}

/**
 * The conversation of a valid body. Results that follow one another are one turn, and so is what the assistant has
 * thought, said and called without an end between; two texts in a row are two turns.
 */
export function readResponsesTurns({ instructions, input }: ResponsesBody): Turn[] {
  const system: ResponsesItem[] = instructions == null ? [] : [{ role: 'system', content: instructions }];
  const conversation: readonly ResponsesItem[] =
    typeof input === 'string' ? [{ role: 'user', content: input }] : input;
  return joinTurns(
    [...system, ...conversation].map((item, index, items) => {
      const before = items[index - 1] ?? item;
      const isMore = index > 0 && groupOf(before) === groupOf(item) && !('role' in before && 'role' in item);
      return { role: groupOf(item), parts: readItem(item), isMore };
    }),
  );
}

/** The role that an item belongs to; results are a group apart from other items of the user. */
function groupOf(item: ResponsesItem): string {
  if (item.type === 'function_call_output') return 'results';
  return item.role ?? 'assistant';
}

function readItem({ type, call_id: id = '', name = '', ...item }: ResponsesItem): Part[] {
  const { summary, encrypted_content } = item;
  switch (type) {
    case 'reasoning':
      return [{ type: 'opaque', provider: 'openai', data: JSON.stringify({ summary, encrypted_content }) }];
    case 'function_call':
      return [{ type: 'tool_call', id, name, arguments: item.arguments ?? '' }];
    case 'function_call_output':
      return [{ type: 'tool_result', callId: id, content: textOf({ content: readContent(item.output) }) }];
    default:
      return readContent(item.content);
  }
}

/** The parameters of a valid body. */
export function readResponsesParameters(body: ResponsesBody): CallParameters {
  const { tools, tool_choice: choice, text: { format, verbosity } = {}, reasoning, include } = body;
  return givenFields({
    maxOutputTokens: body.max_output_tokens,
    temperature: body.temperature,
    topP: body.top_p,
    reasoningEffort: reasoning?.effort,
    verbosity,
    tools: tools?.map(({ type: _, name, ...tool }) => ({ name, ...givenFields(tool) })),
    toolChoice: typeof choice === 'object' ? { name: choice.name } : choice,
    parallelToolCalls: body.parallel_tool_calls,
    format: format && format.type !== 'text' ? { ...givenFields(format), type: format.type } : undefined,
    wantsReasoning: include?.includes('reasoning.encrypted_content'),
    showsThinking: reasoning?.summary == null ? undefined : true,
    markedTurns: body.prompt_cache_key == null ? undefined : Infinity,
  });
}
