import { refusalText } from '../openai/format.js';
import { sign } from '../seals.js';
import type { Reply, ReplyCall } from '../wire-format.js';

/** An event of a stream, before it has its number. */
export interface ResponsesEvent {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** An item of the output: as it ends, as it is added, and the events between, which have its id and index added. */
export interface WrittenItem {
  readonly whole: { readonly id: string; readonly [field: string]: unknown };
  readonly start: object;
  readonly opening?: readonly ResponsesEvent[];
  readonly deltas: readonly ResponsesEvent[];
  readonly closing?: readonly ResponsesEvent[];
}

/** The items of a reply in order: what it thought, its text, unless there are calls alone, and its calls. */
export function writeItems(reply: Reply): WrittenItem[] {
  const { ending, text, calls, isSigned, thoughts } = reply;
  if (ending === 'empty' || ending === 'blocked' || ending === 'failed') return [];
  const isSilent = text === '' && (calls.length > 0 || thoughts.length > 0);
  return [
    ...(isSigned || thoughts.length > 0 ? [writeReasoning(reply, 0)] : []),
    ...(isSilent ? [] : [writeMessage(reply)]),
    ...(thoughts.length > 1 ? [writeReasoning(reply, 1)] : []),
    ...calls.map((call, index) => writeCall(reply, call, index)),
  ];
}

/** The encrypted content of reasoning: only this model takes it back, and only beside the same summary. */
export const seal = (model: string, summary: readonly { text: string }[]): string =>
  sign({ name: model, arguments: JSON.stringify(summary.map(({ text }) => text)) });

/**
 * What the model thought, encrypted where `include` asks for that; newer models encrypt it unasked. In the event that
 * adds the item it is not whole (`ResponseOutputItemAddedEvent` of the SDK).
 */
function writeReasoning({ callId, model, thoughts, request }: Reply, place: number): WrittenItem {
  const { text = '' } = thoughts[place] ?? {};
  const summary = text === '' ? [] : [{ type: 'summary_text', text }];
  const isKept = [request.include].flat().includes('reasoning.encrypted_content');
  const encrypted = isKept ? seal(model, summary) : null;
  const id = `rs_sim${callId}_${place}`;
  const start = { id, type: 'reasoning', summary: [], encrypted_content: encrypted?.slice(0, 20) ?? null };
  const events = summary.flatMap((part): ResponsesEvent[] => [
    { type: 'response.reasoning_summary_part.added', summary_index: 0, part: { ...part, text: '' } },
    { type: 'response.reasoning_summary_text.delta', summary_index: 0, delta: text },
    { type: 'response.reasoning_summary_text.done', summary_index: 0, text },
    { type: 'response.reasoning_summary_part.done', summary_index: 0, part },
  ]);
  return { whole: { ...start, summary, encrypted_content: encrypted }, start, deltas: events };
}

/** The text, or the refusal; where the model thinks it has its phase, which a client sends back. */
function writeMessage({ ending, callId, calls, thoughts, ...reply }: Reply): WrittenItem {
  const phase = thoughts.length > 0 && { phase: calls.length > 0 ? 'commentary' : 'final_answer' };
  const item = { id: `msg_sim${callId}`, type: 'message', role: 'assistant', ...phase };
  const start = { ...item, status: 'in_progress', content: [] };
  const status = ending === 'length' || ending === 'blocked-reply' ? 'incomplete' : 'completed';
  if (ending === 'null') return { whole: { ...start, status }, start, deltas: [] };
  const isRefusal = ending === 'refused';
  const [type, field, text, pieces] = isRefusal
    ? (['refusal', 'refusal', refusalText, [refusalText]] as const)
    : (['output_text', 'text', reply.text, reply.pieces] as const);
  const at = { content_index: 0 };
  const more = { ...at, ...(!isRefusal && { logprobs: [] }) };
  const part = { type, [field]: text, ...(!isRefusal && { annotations: [], logprobs: [] }) };
  return {
    whole: { ...start, status, content: [part] },
    start,
    opening: [{ type: 'response.content_part.added', ...at, part: { ...part, [field]: '' } }],
    deltas: pieces.map((delta) => ({ type: `response.${type}.delta`, ...more, delta })),
    closing: [
      { type: `response.${type}.done`, ...more, [field]: text },
      { type: 'response.content_part.done', ...at, part },
    ],
  };
}

function writeCall({ callId, calls, ending }: Reply, call: ReplyCall, index: number): WrittenItem {
  const { arguments: whole, pieces, name } = call;
  const [id, call_id] = [`fc_sim${callId}_${index}`, `call_sim${callId}_${index}`];
  const item = { id, type: 'function_call', call_id, name };
  const isCut = ending === 'length' && index === calls.length - 1;
  const texts = pieces.length === 0 && whole !== '' ? [whole] : pieces;
  return {
    whole: { ...item, arguments: whole, status: isCut ? 'incomplete' : 'completed' },
    start: { ...item, arguments: '', status: 'in_progress' },
    deltas: texts.map((delta) => ({ type: 'response.function_call_arguments.delta', delta })),
    closing: [{ type: 'response.function_call_arguments.done', arguments: whole }],
  };
}
