import { type Part, type Turn, textOf } from '../../../shared/conversation.js';
import { givenFields } from '../../../shared/json/json.js';
import type { CallParameters } from '../exchange.js';
import { joinTurns, readContent } from '../openai/parts.js';
import type { ResponsesBody, ResponsesItem } from './rules.js';

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
