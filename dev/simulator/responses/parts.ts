import type { Role } from '../../../shared/contract.js';
import { type Part, type Turn, textOf } from '../../../shared/conversation.js';
import { givenFields } from '../../../shared/given-fields.js';
import { contentOf } from '../blocks.js';
import { readImageUrl } from '../openai/parts.js';
import type { CallParameters } from '../wire-format.js';
import type { ResponsesBody, ResponsesItem, ResponsesPart } from './rules.js';

const roleNames: Record<string, Role> = {
  results: 'user',
  user: 'user',
  system: 'system',
  developer: 'system',
};

/**
 * The conversation of a valid body. Results that follow one another are one turn, and so is what the assistant has
 * thought, said and called without an end between; two texts in a row are two turns.
 */
export function readResponsesTurns({ instructions, input }: ResponsesBody): Turn[] {
  const turns: { role: Role; parts: Part[] }[] = [];
  if (instructions != null) turns.push({ role: 'system', parts: [{ type: 'text', text: instructions }] });
  const items: readonly ResponsesItem[] =
    typeof input === 'string' ? [{ role: 'user', content: input }] : input;
  for (const [index, item] of items.entries()) {
    const before = items[index - 1];
    const isMore = before && groupOf(before) === groupOf(item) && !('role' in before && 'role' in item);
    if (isMore) turns.at(-1)?.parts.push(...readItem(item));
    else turns.push({ role: roleNames[groupOf(item)] ?? 'assistant', parts: readItem(item) });
  }
  return turns.map(({ role, parts }) => ({ role, content: contentOf(parts) }));
}

/** Whose an item is; results are apart from what else the user says. */
function groupOf(item: ResponsesItem): string {
  if (item.type === 'function_call_output') return 'results';
  return 'role' in item ? item.role : 'assistant';
}

function readItem(item: ResponsesItem): Part[] {
  switch (item.type) {
    case 'reasoning': {
      const { summary, encrypted_content } = item;
      const data = JSON.stringify({ summary, encrypted_content });
      return [{ type: 'opaque', provider: 'openai', data }];
    }
    case 'function_call':
      return [{ type: 'tool_call', id: item.call_id, name: item.name, arguments: item.arguments }];
    case 'function_call_output':
      return [
        { type: 'tool_result', callId: item.call_id, content: textOf({ content: readContent(item.output) }) },
      ];
    default:
      return readContent(item.content);
  }
}

const readContent = (content: string | ResponsesPart[]): Part[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : content.map(readPart);

function readPart(part: ResponsesPart): Part {
  if (part.type === 'refusal') return { type: 'text', text: part.refusal };
  return part.type === 'input_image' ? readImageUrl(part.image_url) : { type: 'text', text: part.text };
}

/** The parameters of a valid body. */
export function readResponsesParameters(body: ResponsesBody): CallParameters {
  const { tools, tool_choice: choice, text, reasoning, include } = body;
  return givenFields({
    maxOutputTokens: body.max_output_tokens,
    temperature: body.temperature,
    topP: body.top_p,
    reasoningEffort: reasoning?.effort,
    verbosity: text?.verbosity,
    tools: tools?.map(({ type: _, name, ...tool }) => ({ name, ...givenFields(tool) })),
    toolChoice: typeof choice === 'object' ? { name: choice.name } : choice,
    parallelToolCalls: body.parallel_tool_calls,
    format: text?.format && readFormat(text.format),
    wantsReasoning: include?.includes('reasoning.encrypted_content'),
    showsThinking: reasoning?.summary == null ? undefined : true,
    markedTurns: body.prompt_cache_key == null ? undefined : Infinity,
  });
}

type AskedFormat = NonNullable<NonNullable<ResponsesBody['text']>['format']>;

function readFormat(format: AskedFormat): CallParameters['format'] {
  if (format.type === 'json_schema') return { type: format.type, ...givenFields(format) };
  return format.type === 'text' ? undefined : format;
}
