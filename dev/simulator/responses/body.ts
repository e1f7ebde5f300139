import { type Part, type Turn, textOf } from '../../../shared/conversation.js';
import { givenFields, type JsonObject } from '../../../shared/json/json.js';
import * as openai from '../openai/body.js';
import { openAiError, openAiErrors } from '../openai/errors.js';
import { type CallParameters, firstFault, type Refusal } from '../wire-format.js';
import { seal } from './items.js';

interface ResponsesTool extends openai.Tool {
  readonly type: string;
}

/** An item of the type that its fields belong to; one with a role is a message. */
export interface ResponsesItem {
  readonly type?: string;
  readonly role?: string;
  readonly content?: string | readonly openai.MessagePart[];
  readonly id?: string;
  readonly call_id?: string;
  readonly name?: string;
  readonly arguments?: string;
  readonly output?: string | readonly openai.MessagePart[];
  readonly summary?: readonly { text: string }[];
  readonly encrypted_content?: string;
}

/** A body of Responses, as far as it is read (`ResponseCreateParamsBase` of OpenAI's SDK). */
export interface ResponsesBody extends openai.CommonBody {
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

/** The error of Responses for a limit below 16 (earendil-works/pi#6265), and for items that it did not give so. */
export function checkResponsesRequest(body: ResponsesBody): Refusal | undefined {
  const { input, model = '', text, max_output_tokens: limit = 16 } = body;
  if (limit < 16) return openAiErrors.wrong(['max_output_tokens'], 'an integer from 16');
  const items = typeof input === 'string' ? [] : input;
  return (
    openai.findJsonFault(text?.format?.type, 'input', input) ??
    firstFault(items, (item) => checkStored(item) ?? checkSeal(item, model))
  );
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
  return openai.joinTurns(
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
      return [
        { type: 'tool_result', callId: id, content: textOf({ content: openai.readContent(item.output) }) },
      ];
    default:
      return openai.readContent(item.content);
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
    isMarked: body.prompt_cache_key == null ? undefined : true,
  });
}
