import type OpenAI from 'openai';
import { z } from 'zod';
import {
  type ImagePart,
  type Part,
  partsOf,
  type TextPart,
  type Turn,
  textOf,
} from '../../../shared/conversation.js';
import { givenFields, readJson } from '../../../shared/json/json.js';
import type { ReplyFormat, Tool, ToolChoice } from '../../../shared/models/model-parameters.js';
import { type ProviderRequest, toFittingId } from '../provider.js';

type Message = OpenAI.Chat.ChatCompletionMessageParam;

/** The body of a request for a chat completion. Without tools it has none of the fields that belong to them. */
export function toBody(request: ProviderRequest) {
  const { turns, model, maxOutputTokens, parameters = {} } = request;
  const { topP, frequencyPenalty, presencePenalty, reasoningEffort, temperature, stop, seed } = parameters;
  const { verbosity, format, tools, toolChoice, parallelToolCalls } = parameters;
  return {
    model,
    messages: turns.flatMap((turn) => toMessages(turn, request)),
    ...givenFields({
      max_completion_tokens: maxOutputTokens,
      temperature,
      top_p: topP,
      stop,
      seed,
      reasoning_effort: reasoningEffort,
      verbosity,
      frequency_penalty: frequencyPenalty,
      presence_penalty: presencePenalty,
      response_format: format && toFormat(format),
      ...(tools && {
        tools: tools.map(toTool),
        tool_choice: toolChoice && toChoice(toolChoice),
        parallel_tool_calls: parallelToolCalls,
      }),
    }),
  };
}

/** The key for what OpenAI has cached, as it takes it: https://platform.openai.com/docs/api-reference/responses/create */
export const toCacheKey = ({ cacheKey }: ProviderRequest): string | undefined =>
  cacheKey && toFittingId(cacheKey, /^.{1,64}$/s);

function toMessages({ role, content }: Turn, request: ProviderRequest): Message[] {
  if (role === 'assistant') return [toAssistant(partsOf({ content }), request)];
  if (typeof content === 'string') return [{ role, content }];
  return role === 'system' ? [{ role, content: textOf({ content }) }] : toUser(content);
}

function toAssistant(parts: readonly Part[], request: ProviderRequest): Message {
  const text = textOf({ content: parts });
  const calls = parts.flatMap((part) => {
    if (part.type !== 'tool_call') return [];
    const { id, name, arguments: json } = part;
    return [{ id: toId(id), type: 'function' as const, function: { name, arguments: json } }];
  });
  if (calls.length === 0) return { role: 'assistant', content: text || null, ...thinkingOf([], request) };
  return { role: 'assistant', content: text || null, tool_calls: calls, ...thinkingOf(parts, request) };
}

const kept = z.strictObject({ reasoning: z.string().optional(), reasoning_content: z.string().optional() });

/** Stands for thinking that is missing; not every model takes an empty text: NousResearch/hermes-agent#18263. */
const noThinking = ' ';

/** The thinking of this model before its calls, in the fields in which it came; a client has sent it back. */
function thinkingOf(parts: readonly Part[], { model, omits }: ProviderRequest): z.infer<typeof kept> {
  const blocks = parts.flatMap((part) => {
    const isOwn = part.type === 'opaque' && part.provider === 'openai' && part.model === model;
    return (isOwn && kept.safeParse(readJson(part.data)).data) || [];
  });
  const joinField = (field: keyof z.infer<typeof kept>) =>
    blocks.map((block) => block[field] ?? '').join('') || null;
  const missing = omits?.has('reasoningContent') ? noThinking : null;
  return givenFields({
    reasoning: joinField('reasoning'),
    reasoning_content: joinField('reasoning_content') ?? missing,
  });
}

/**
 * The results of calls, and then a message with all else. This API takes texts alone in results
 * (`ChatCompletionToolMessageParam`): their images come first in that message, by the names that results have for them.
 */
function toUser(parts: readonly Part[]): Message[] {
  const shown: (TextPart | ImagePart)[] = [];
  const nameImage = (image: ImagePart): string => {
    const name = `[image ${shown.length / 2 + 1} of the results]`;
    shown.push({ type: 'text', text: name }, image);
    return name;
  };
  const results = parts
    .filter((part) => part.type === 'tool_result')
    .map(({ callId, content: given }): Message => {
      const lines =
        typeof given === 'string'
          ? [given]
          : given.map((part) => (part.type === 'text' ? part.text : nameImage(part)));
      return { role: 'tool', tool_call_id: toId(callId), content: lines.join('\n') };
    });
  const content = [...shown, ...parts].flatMap((part): OpenAI.Chat.ChatCompletionContentPart[] => {
    if (part.type === 'image') return [{ type: 'image_url', image_url: { url: toUrl(part) } }];
    return part.type === 'text' && part.text !== '' ? [{ type: 'text', text: part.text }] : [];
  });
  return content.length === 0 ? results : [...results, { role: 'user', content }];
}

/** The address of an image, or its bytes as one. */
export const toUrl = (image: ImagePart): string =>
  'url' in image ? image.url : `data:${image.mediaType};base64,${image.data}`;

/** OpenAI refuses longer ids. */
const toId = (id: string): string => toFittingId(id, /^.{0,40}$/s);

const toTool = ({ name, description, parameters, strict }: Tool): OpenAI.Chat.ChatCompletionFunctionTool => ({
  type: 'function',
  function: { name, ...givenFields({ description, parameters, strict }) },
});

const toChoice = (choice: ToolChoice): OpenAI.Chat.ChatCompletionToolChoiceOption =>
  typeof choice === 'string' ? choice : { type: 'function', function: choice };

function toFormat(
  format: ReplyFormat,
): NonNullable<OpenAI.Chat.ChatCompletionCreateParams['response_format']> {
  if (format.type === 'json_object') return format;
  const { name, description, schema, strict } = format;
  return { type: 'json_schema', json_schema: { name, ...givenFields({ description, schema, strict }) } };
}
