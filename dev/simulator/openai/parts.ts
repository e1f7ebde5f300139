import type { Role } from '../../../shared/contract.js';
import type { Part, Turn } from '../../../shared/conversation.js';
import { contentOf } from '../blocks.js';
import { readImage } from '../image.js';
import type { Refusal } from '../refusal.js';
import { checkShape } from '../shape.js';
import type { AskedFormat, CallParameters, Reply } from '../wire-format.js';
import {
  messageShape,
  type OpenAiBody,
  type OpenAiMessage,
  type OpenAiPart,
  openAiComplaints,
  textParts,
  userParts,
} from './shapes.js';

/** The error for the first field of a message that has the wrong shape. */
export function checkOpenAiMessage(message: OpenAiMessage, index: number): Refusal | undefined {
  // Most messages are a text, of which all else was checked before.
  const { role, content, ...others } = message;
  if (typeof content === 'string' && role !== 'tool' && Object.keys(others).length === 0) return undefined;
  const judged = { at: ['messages', index], complaints: openAiComplaints };
  const refusal = checkShape(messageShape, message, judged);
  if (refusal !== undefined || !Array.isArray(content)) return refusal;
  const shape = role === 'user' ? userParts : textParts;
  return checkShape(shape, content, { ...judged, at: [...judged.at, 'content'] });
}

const roleNames: Record<string, Role> = { system: 'system', developer: 'system', assistant: 'assistant' };

/** The conversation of valid messages; results that follow one another are one turn. */
export function readOpenAiTurns(messages: readonly OpenAiMessage[]): Turn[] {
  const turns: { role: Role; parts: Part[] }[] = [];
  for (const [index, message] of messages.entries()) {
    const parts = readMessage(message);
    const isMore = message.role === 'tool' && messages[index - 1]?.role === 'tool';
    if (isMore) turns.at(-1)?.parts.push(...parts);
    else turns.push({ role: roleNames[message.role] ?? 'user', parts });
  }
  return turns.map(({ role, parts }) => ({ role, content: contentOf(parts) }));
}

function readMessage({
  role,
  content,
  tool_calls: calls = [],
  tool_call_id: callId = '',
}: OpenAiMessage): Part[] {
  const parts = typeof content === 'string' ? [{ type: 'text' as const, text: content }] : (content ?? []);
  const read = parts.map(readPart);
  if (role === 'tool') {
    const said = read.map((part) => (part.type === 'text' ? part.text : '')).join('');
    return [{ type: 'tool_result', callId, content: said }];
  }
  return [...read, ...calls.map(({ id, function: called }): Part => ({ type: 'tool_call', id, ...called }))];
}

function readPart(part: OpenAiPart): Part {
  if (part.type === 'text') return part;
  const { url } = part.image_url;
  if (!url.startsWith('data:')) return { type: 'image', url };
  const end = url.indexOf(',');
  return readImage(url.slice('data:'.length, end).replace(/;base64$/, ''), url.slice(end + 1));
}

/** The tools of a body, and the form of the reply that it asks for. */
export function readOpenAiTools(body: OpenAiBody): CallParameters {
  const { tools, tool_choice: choice, response_format: format } = body;
  return {
    verbosity: body.verbosity,
    tools: tools?.map(({ function: { strict, ...tool } }) => ({
      ...tool,
      ...(strict != null && { strict }),
    })),
    toolChoice: typeof choice === 'object' ? choice.function : choice,
    parallelToolCalls: body.parallel_tool_calls ?? undefined,
    format: format && readFormat(format),
  };
}

function readFormat(format: NonNullable<OpenAiBody['response_format']>): AskedFormat | undefined {
  if (format.type !== 'json_schema') return format.type === 'text' ? undefined : format;
  const { strict, ...named } = format.json_schema;
  return { type: 'json_schema', ...named, ...(strict != null && { strict }) };
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
