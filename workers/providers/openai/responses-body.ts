import type OpenAI from 'openai';
import { z } from 'zod';
import {
  type ImagePart,
  type OpaquePart,
  type Part,
  type TextPart,
  type ToolResultPart,
  type Turn,
  textOf,
} from '../../../shared/conversation.js';
import { givenFields, readJson } from '../../../shared/json/json.js';
import type { ReplyFormat, Tool, ToolChoice } from '../../../shared/models/model-parameters.js';
import { type ProviderRequest, toFittingId } from '../provider.js';
import { toCacheKey, toUrl } from './chat-completions-body.js';

type Item = OpenAI.Responses.ResponseInputItem;
type Phase = NonNullable<OpenAI.Responses.EasyInputMessage['phase']>;

/** The API refuses a lower limit of tokens. https://github.com/earendil-works/pi/issues/6265 */
const leastOutputTokens = 16;

/**
 * The body of a request for a response that OpenAI does not keep (`ResponseCreateParamsBase` of its SDK). Reasoning is
 * asked for as a text that only OpenAI can read, where the caller can be given it.
 */
export function toBody(request: ProviderRequest) {
  const { turns, model, reasoning, maxOutputTokens, parameters = {}, asksThinking, user, omits } = request;
  const { topP, temperature, tools, toolChoice, parallelToolCalls } = parameters;
  const { reasoningEffort, verbosity, format } = parameters;
  const summary = asksThinking && !omits?.has('summary') ? ('auto' as const) : undefined;
  const thinking = givenFields({ effort: reasoningEffort, summary });
  const text = givenFields({ verbosity, format: format && toFormat(format) });
  return {
    model,
    input: turns.flatMap((turn) => toItems(turn, model)),
    store: false,
    ...(reasoning &&
      !omits?.has('encryptedReasoning') && { include: ['reasoning.encrypted_content' as const] }),
    ...givenFields({
      max_output_tokens: maxOutputTokens && Math.max(leastOutputTokens, maxOutputTokens),
      temperature,
      top_p: topP,
      safety_identifier: user,
      prompt_cache_key: toCacheKey(request),
    }),
    ...(Object.keys(thinking).length > 0 && { reasoning: thinking }),
    ...(Object.keys(text).length > 0 && { text }),
    ...(tools && {
      tools: tools.map(toTool),
      ...givenFields({
        tool_choice: toolChoice && toChoice(toolChoice),
        parallel_tool_calls: parallelToolCalls,
      }),
    }),
  } satisfies OpenAI.Responses.ResponseCreateParams;
}

function toItems({ role, content }: Turn, model: string): Item[] {
  if (typeof content === 'string') return [{ role, content }];
  switch (role) {
    case 'system':
      return [{ role, content: textOf({ content }) }];
    case 'assistant':
      return ofAssistant(content, model);
    case 'user':
      return ofUser(content);
  }
}

/** The parts in their order: the API wants each where it was. */
function ofAssistant(parts: readonly Part[], model: string): Item[] {
  let phase: Phase | undefined;
  return parts.flatMap((part): Item[] => {
    switch (part.type) {
      case 'text': {
        const message = { role: 'assistant' as const, content: part.text, ...givenFields({ phase }) };
        phase = undefined;
        return part.text === '' ? [] : [message];
      }
      case 'tool_call': {
        const { id, name, arguments: json } = part;
        return [{ type: 'function_call', call_id: toId(id), name, arguments: json }];
      }
      case 'opaque': {
        const kept = part.provider === 'openai' && part.model === model ? readOpaque(part) : {};
        phase = kept.phase ?? phase;
        return kept.reasoning ? [kept.reasoning] : [];
      }
      default:
        return [];
    }
  });
}

const summaries = z.array(z.strictObject({ type: z.literal('summary_text'), text: z.string() }));
const reasoningBlock = z.strictObject({ summary: summaries, encrypted_content: z.string().min(1) });
const messageStart = z.strictObject({ phase: z.enum(['commentary', 'final_answer']) });

/** They come back from a client, so anything may be in them. */
function readOpaque({ role, data }: OpaquePart): { phase?: Phase; reasoning?: Item } {
  const value = readJson(data);
  if (role === 'start') return messageStart.safeParse(value).data ?? {};
  const block = reasoningBlock.safeParse(value).data;
  // Without its id: one of a reply that was not kept is refused. https://github.com/anomalyco/opencode/issues/7724
  return block
    ? { reasoning: { type: 'reasoning', ...block } as OpenAI.Responses.ResponseReasoningItem }
    : {};
}

/** The results of calls, and then a message with all else. */
function ofUser(parts: readonly Part[]): Item[] {
  const results = parts.flatMap((part): Item[] =>
    part.type === 'tool_result'
      ? [{ type: 'function_call_output', call_id: toId(part.callId), output: toOutput(part) }]
      : [],
  );
  const content = parts.flatMap((part) =>
    part.type === 'image' || (part.type === 'text' && part.text !== '') ? [toContent(part)] : [],
  );
  return content.length === 0 ? results : [...results, { role: 'user', content }];
}

const toContent = (part: TextPart | ImagePart) =>
  part.type === 'image'
    ? { type: 'input_image' as const, image_url: toUrl(part), detail: 'auto' as const }
    : { type: 'input_text' as const, text: part.text };

const toOutput = ({ content }: ToolResultPart) =>
  typeof content === 'string' ? content : content.map(toContent);

/** The API refuses longer ids. https://github.com/AnswerDotAI/fastllm/issues/45 */
const toId = (id: string): string => toFittingId(id, /^.{1,64}$/s);

/** A tool without a word about it would be strict: `strict` of `FunctionTool`, where both fields are required. */
const toTool = ({ name, description, parameters, strict }: Tool): OpenAI.Responses.FunctionTool => ({
  type: 'function',
  name,
  ...givenFields({ description }),
  parameters: parameters ?? null,
  strict: strict ?? false,
});

const toChoice = (
  choice: ToolChoice,
): OpenAI.Responses.ToolChoiceOptions | OpenAI.Responses.ToolChoiceFunction =>
  typeof choice === 'string' ? choice : { type: 'function', ...choice };

function toFormat(format: ReplyFormat): OpenAI.Responses.ResponseFormatTextConfig {
  if (format.type === 'json_object') return format;
  const { name, description, schema, strict = false } = format;
  return { type: 'json_schema', name, schema, strict, ...givenFields({ description }) };
}
