import type { ProviderId, Role } from '../../../shared/contracts/contract.js';
import {
  isBlank,
  type Part,
  type ToolCallPart,
  type ToolResultPart,
  type Turn,
  textOf,
} from '../../../shared/conversation.js';
import { Failure } from '../../../shared/failures.js';
import { withWholePairs } from '../../../shared/json/json.js';
import { measureTree } from '../../../shared/json/json-worker.js';
import { unsupportedReason } from '../../../shared/models/provider-support.js';
import type { ConversationChange } from '../../../shared/protocol/alternating-turns.js';
import { invalid } from '../../../shared/validation.js';
import type { ReadConversation } from '../request-options.js';
import { partsBeforeCalls } from './extra-content.js';
import { type RequestImages, UnfitImage } from './images.js';
import type { MessageBody, PartBody, ToolCallBody } from './message-body.js';

/** Bounds the values in the arguments of all calls, and those in their blocks; to parse as many takes 50 ms at most. */
const maxValues = 20_000;
const maxDepth = 128;
const maxResults = 2000;

/**
 * The messages as turns: blank ones are dropped, and the results of calls become one turn of the user, in the order of
 * the calls. Throws `empty_conversation`, and `invalid_request` for calls and results that do not belong together, and
 * for what the provider does not take.
 */
export function readConversation(
  messages: readonly MessageBody[],
  context: ReadingContext,
): ReadConversation {
  const reader = new ConversationReader(context);
  for (const [place, message] of messages.entries()) reader.read(message, place);
  reader.endCalls();
  if (reader.turns.length === 0) throw new Failure('empty_conversation');
  return { turns: reader.turns, changes: reader.changes.size > 0 ? [...reader.changes] : undefined };
}

interface ReadingContext {
  readonly provider: ProviderId;
  readonly images: Pick<RequestImages, 'read'>;
}

/** The content of a message, and its place. */
interface Read {
  readonly content: Turn['content'];
  readonly place: number;
}

/** A call that its results have to follow. */
interface OpenCall {
  readonly at: string;
  result?: ToolResultPart;
  /** The place of the message with the result. */
  place?: number;
}

class ConversationReader {
  readonly turns: Turn[] = [];
  readonly changes = new Set<ConversationChange>();
  readonly #ids = new Set<string>();
  /** By their ids: those of the last message, in their order. */
  readonly #calls = new Map<string, OpenCall>();
  #resultCount = 0;
  readonly #values = { arguments: 0, blocks: 0 };

  constructor(private readonly context: ReadingContext) {}

  read(message: MessageBody, place: number): void {
    const at = `/messages/${place}`;
    const content = contentOf(message, { at, ...this.context });
    if (typeof content !== 'string' && content.length < (message.content?.length ?? 0))
      this.changes.add('dropped-blank');
    const { role, tool_call_id: callId, tool_calls: calls } = message;
    if (role === 'tool') this.#addResult(callId, { content, place });
    else this.#addMessage(role === 'developer' ? 'system' : role, calls ?? [], { content, place });
  }

  #addMessage(role: Role, calls: readonly ToolCallBody[], { content, place }: Read): void {
    const at = `/messages/${place}`;
    if (calls.length > 0 && role !== 'assistant')
      throw invalid(`${at}/tool_calls`, 'belong to messages of the assistant');
    if (calls.length === 0 && typeof content === 'string' && isBlank(content))
      return void this.changes.add('dropped-blank');
    if (role === 'system' && this.#unanswered())
      throw invalid(`${at}/role`, 'must be tool: there are calls before it without results');
    this.endCalls();
    const whole = calls.length === 0 ? content : this.#withCalls(textOf({ content }), { calls, at });
    this.turns.push({ role, content: whole });
  }

  /** Adds the turn with the results of the last calls. */
  endCalls(): void {
    if (this.#calls.size === 0) return;
    const unanswered = this.#unanswered();
    if (unanswered)
      throw invalid(unanswered.at, 'has no result: a message of role tool with its id has to follow');
    const places = [...this.#calls.values()].map((call) => call.place ?? 0);
    if (places.some((place, n) => place < (places[n - 1] ?? 0))) this.changes.add('results-first');
    const results = [...this.#calls.values()].flatMap(({ result }) => result ?? []);
    this.turns.push({ role: 'user', content: results });
    this.#calls.clear();
  }

  #unanswered(): OpenCall | undefined {
    return [...this.#calls.values()].find(({ result }) => result === undefined);
  }

  #addResult(callId: string | null | undefined, { content, place }: Read): void {
    const at = `/messages/${place}`;
    if (typeof callId !== 'string') throw invalid(`${at}/tool_call_id`, 'is required');
    if (++this.#resultCount > maxResults) throw invalid(at, `is beyond the limit of ${maxResults} results`);
    const call = this.#calls.get(callId);
    if (call === undefined)
      throw invalid(`${at}/tool_call_id`, 'is not the id of a call in the message before the results');
    if (call.result) throw invalid(`${at}/tool_call_id`, 'has a result already');
    call.place = place;
    call.result = { type: 'tool_result', callId, content: textOf({ content }) };
  }

  #withCalls(text: string, { calls, at }: { calls: readonly ToolCallBody[]; at: string }): Part[] {
    const before = partsBeforeCalls(text, calls, (json, place) =>
      this.#checkJson('blocks', json, `${at}/tool_calls/${place}/extra_content`),
    );
    const kept = before.flat().reduce((sum, part) => sum + (part.type === 'text' ? part.text.length : 0), 0);
    if (kept < text.length) this.changes.add('dropped-blank');
    return calls.flatMap((call, place) => [
      ...(before[place] ?? []),
      this.#toPart(call, `${at}/tool_calls/${place}`),
    ]);
  }

  #toPart({ id, function: called }: ToolCallBody, at: string): ToolCallPart {
    if (this.#ids.has(id)) throw invalid(`${at}/id`, 'is the id of another call');
    this.#ids.add(id);
    this.#calls.set(id, { at });
    const text = called.arguments.trim() === '' ? '{}' : withWholePairs(called.arguments);
    this.#checkJson('arguments', text, `${at}/function/arguments`);
    const call = { type: 'tool_call', id, name: called.name, arguments: text } as const;
    const defect = unsupportedReason(this.context.provider, call);
    if (defect !== undefined) throw invalid(`${at}/function/name`, defect);
    return call;
  }

  /** Models write them, and may be cut: a text that is no JSON is taken back as it was handed out. */
  #checkJson(kind: 'arguments' | 'blocks', text: string, pointer: string): void {
    const limits = { maxDepth, maxValues: maxValues - this.#values[kind] };
    const { values, excess } = measureTree(Buffer.from(text), limits);
    if (values > limits.maxValues)
      throw invalid(pointer, `and those before it have more than ${maxValues} values`);
    if (excess) throw invalid(pointer, excess);
    this.#values[kind] += values;
  }
}

type Place = ReadingContext & { readonly at: string };

/** A text, or parts where one is an image. */
function contentOf({ role, content, tool_calls: calls }: MessageBody, place: Place): Turn['content'] {
  const { at } = place;
  if (typeof content === 'string') return content;
  if (Array.isArray(content)) {
    const parts = content.map((part, n) => toPart(part, { ...place, role, at: `${at}/content/${n}` }));
    if (parts.every((part) => part.type === 'text')) return parts.map(({ text }) => text).join('');
    return parts.filter((part) => part.type !== 'text' || !isBlank(part.text));
  }
  if (role === 'assistant' && calls && calls.length > 0) return '';
  const detail = content === undefined ? 'is required' : 'must be a string or an array of parts';
  throw invalid(`${at}/content`, detail);
}

function toPart(part: PartBody, { role, at, provider, images }: Place & { role: string }) {
  if (part.type === 'text') return part;
  if (role !== 'user') throw invalid(`${at}/type`, 'must be text: images belong to messages of the user');
  const pointer = `${at}/image_url/url`;
  try {
    const image = images.read(part.image_url.url);
    const defect = unsupportedReason(provider, image);
    if (defect === undefined) return image;
    throw new UnfitImage(defect);
  } catch (error) {
    throw error instanceof UnfitImage ? invalid(pointer, error.message) : error;
  }
}
