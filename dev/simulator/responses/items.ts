import type { Reply, ReplyCall } from '../wire-format.js';
import type { ResponsesBody } from './rules.js';
import { seal } from './seal.js';

/** An event of a stream, before it has its number. */
export interface ResponsesEvent {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** An item of the output: whole, and the events that begin it, add to it and end it. */
export interface WrittenItem {
  readonly whole: object;
  readonly beginning: readonly ResponsesEvent[];
  readonly deltas: readonly ResponsesEvent[];
  readonly end: readonly ResponsesEvent[];
}

const refusalText = "I'm sorry, but I can't help with that.";

/** The items of a reply in order: what it thought, its text, unless there are calls alone, and its calls. */
export function writeItems(reply: Reply): WrittenItem[] {
  const { ending, text, calls, isSigned, thoughts } = reply;
  if (ending === 'empty' || ending === 'blocked' || ending === 'failed') return [];
  const [before, between] = thoughts;
  const reasoning = (index: number) => reasoningItem(reply, index);
  const writers: ((index: number) => WrittenItem)[] = [
    ...(before || isSigned ? [reasoning] : []),
    ...(text !== '' || (calls.length === 0 && !before) ? [(index: number) => messageItem(reply, index)] : []),
    ...(between ? [reasoning] : []),
    ...calls.map((call) => (index: number) => callItem(reply, call, index)),
  ];
  return writers.map((write, index) => write(index));
}

/** An item between its `output_item.added` and its `output_item.done`. */
function between(
  { start, whole, index }: { start: object; whole: object; index: number },
  {
    opening = [],
    deltas = [],
    closing = [],
  }: Partial<Record<'opening' | 'deltas' | 'closing', ResponsesEvent[]>>,
): WrittenItem {
  const at = { output_index: index };
  return {
    whole,
    beginning: [{ type: 'response.output_item.added', ...at, item: start }, ...opening],
    deltas,
    end: [...closing, { type: 'response.output_item.done', ...at, item: whole }],
  };
}

/**
 * What the model thought: in words where `reasoning.summary` asks for them, and encrypted where `include` asks for
 * that. Newer models encrypt it unasked. In `output_item.added` it is not whole (`ResponseOutputItemAddedEvent`).
 */
function reasoningItem(reply: Reply, index: number): WrittenItem {
  const id = `rs_sim${reply.callId}_${index}`;
  const { reasoning, include } = reply.request as ResponsesBody;
  const isShown = reasoning?.summary != null;
  const summary = isShown ? [{ type: 'summary_text', text: '**Simulating**\n\nI think.' }] : [];
  const isKept = include?.includes('reasoning.encrypted_content') === true;
  const encrypted = isKept ? seal({ summary }, { model: reply.model, name: id }) : null;
  const start = { id, type: 'reasoning', summary: [], encrypted_content: encrypted?.slice(0, 20) ?? null };
  const at = { item_id: id, output_index: index, summary_index: 0 };
  const deltas = summary.flatMap(({ text }): ResponsesEvent[] => {
    const part = { type: 'summary_text', text };
    return [
      { type: 'response.reasoning_summary_part.added', ...at, part: { ...part, text: '' } },
      { type: 'response.reasoning_summary_text.delta', ...at, delta: text },
      { type: 'response.reasoning_summary_text.done', ...at, text },
      { type: 'response.reasoning_summary_part.done', ...at, part },
    ];
  });
  return between({ start, whole: { ...start, summary, encrypted_content: encrypted }, index }, { deltas });
}

/** The text, or the refusal; of a reply that thinks it has its phase, which a client sends back. */
function messageItem(reply: Reply, index: number): WrittenItem {
  const { ending, callId, calls, isSigned, thoughts } = reply;
  const id = `msg_sim${callId}_${index}`;
  const phase = (isSigned || thoughts.length > 0) && { phase: calls.length > 0 ? 'commentary' : 'final_answer' };
  const start = { id, type: 'message', status: 'in_progress', role: 'assistant', content: [], ...phase };
  const isCut = ending === 'length' || ending === 'blocked-reply';
  const done = { ...start, status: isCut ? 'incomplete' : 'completed' };
  if (ending === 'null') return between({ start, whole: done, index }, {});
  const isRefusal = ending === 'refused';
  const { name, field, text, pieces } = isRefusal
    ? { name: 'refusal', field: 'refusal', text: refusalText, pieces: [refusalText] }
    : { name: 'output_text', field: 'text', text: reply.text, pieces: reply.pieces };
  const part = { type: name, [field]: text, ...(!isRefusal && { annotations: [], logprobs: [] }) };
  const at = { item_id: id, output_index: index, content_index: 0 };
  const logprobs = !isRefusal && { logprobs: [] };
  const { stream_options: options } = reply.request as ResponsesBody;
  const isPadded = options?.include_obfuscation !== false;
  const opening = [{ type: 'response.content_part.added', ...at, part: { ...part, [field]: '' } }];
  const deltas = pieces.map((delta) => ({
    ...{ type: `response.${name}.delta`, ...at, delta, ...logprobs },
    ...(isPadded && { obfuscation: 'x'.repeat(16 - (delta.length % 16)) }),
  }));
  const closing = [
    { type: `response.${name}.done`, ...at, [field]: text, ...logprobs },
    { type: 'response.content_part.done', ...at, part },
  ];
  return between({ start, whole: { ...done, content: [part] }, index }, { opening, deltas, closing });
}

function callItem(reply: Reply, call: ReplyCall, index: number): WrittenItem {
  const { arguments: whole, pieces, name } = call;
  const id = `fc_sim${reply.callId}_${index}`;
  const facts = { id, type: 'function_call', call_id: `call_sim${reply.callId}_${index}`, name };
  const status = reply.ending === 'length' && call === reply.calls.at(-1) ? 'incomplete' : 'completed';
  const at = { item_id: id, output_index: index };
  const texts = pieces.length === 0 && whole !== '' ? [whole] : pieces;
  return between(
    {
      start: { ...facts, arguments: '', status: 'in_progress' },
      whole: { ...facts, arguments: whole, status },
      index,
    },
    {
      deltas: texts.map((delta) => ({ type: 'response.function_call_arguments.delta', ...at, delta })),
      closing: [{ type: 'response.function_call_arguments.done', ...at, arguments: whole }],
    },
  );
}
