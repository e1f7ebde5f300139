import type OpenAI from 'openai';
import { type ImagePart, type Part, type Turn, textOf } from '../../shared/conversation.js';
import { givenFields } from '../../shared/given-fields.js';
import type { ReplyFormat, Tool, ToolChoice } from '../../shared/protocol/model-parameters.js';
import { speakSystemOnly, toFittingId } from './message-shaping.js';
import type { ProviderRequest } from './provider.js';

type Message = OpenAI.Chat.ChatCompletionMessageParam;

/** The body of a request for a chat completion. Without tools it has none of the fields that belong to them. */
export function toBody({ turns, model, maxOutputTokens, parameters = {}, user }: ProviderRequest) {
  const { topP, frequencyPenalty, presencePenalty, reasoningEffort, temperature, stop, seed } = parameters;
  const { verbosity, format, tools, toolChoice, parallelToolCalls } = parameters;
  return {
    model,
    messages: speakSystemOnly(turns).flatMap(toMessages),
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
      safety_identifier: user,
      ...(tools && {
        tools: tools.map(toTool),
        tool_choice: toolChoice && toChoice(toolChoice),
        parallel_tool_calls: parallelToolCalls,
      }),
    }),
  };
}

function toMessages({ role, content }: Turn): Message[] {
  if (typeof content === 'string') return [{ role, content }];
  switch (role) {
    case 'system':
      return [{ role, content: textOf({ content }) }];
    case 'assistant':
      return [toAssistant(content)];
    case 'user':
      return toUser(content);
  }
}

function toAssistant(parts: readonly Part[]): Message {
  const text = textOf({ content: parts });
  const calls = parts.flatMap((part) => {
    if (part.type !== 'tool_call') return [];
    const { id, name, arguments: json } = part;
    return [{ id: toId(id), type: 'function' as const, function: { name, arguments: json } }];
  });
  return { role: 'assistant', content: text || null, ...(calls.length > 0 && { tool_calls: calls }) };
}

/** The results of calls, and then a message with all else. */
function toUser(parts: readonly Part[]): Message[] {
  const results = parts.flatMap((part): Message[] =>
    part.type === 'tool_result'
      ? [{ role: 'tool', tool_call_id: toId(part.callId), content: part.content }]
      : [],
  );
  const said = parts.flatMap((part): OpenAI.Chat.ChatCompletionContentPart[] => {
    if (part.type === 'image') return [{ type: 'image_url', image_url: { url: toUrl(part) } }];
    return part.type === 'text' && part.text !== '' ? [{ type: 'text', text: part.text }] : [];
  });
  return said.length === 0 ? results : [...results, { role: 'user', content: said }];
}

const toUrl = (image: ImagePart): string =>
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
