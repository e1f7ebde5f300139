import { parseExactly } from '../../../shared/json/exact-json.js';
import { isObject, readJson } from '../../../shared/json/json.js';
import { hasCalls, type Mark } from '../../../shared/protocol/parts.js';
import type { Completion } from '../../chat/chat-result.js';

/** One event of a message: https://platform.claude.com/docs/en/build-with-claude/streaming#event-types */
export interface MessageEvent {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** The facts of a message that its request decides. */
export interface MessageHead {
  /** Id of the chat. */
  readonly id: string;
  /** The model as the caller named it. */
  readonly model: string;
  /** About how many tokens the request has, for as long as nobody has counted them. */
  readonly tokens: number;
}

type Json = Readonly<Record<string, unknown>>;

/** The block that is open, as far as pieces may continue it. */
type OpenBlock = 'text' | 'thinking' | 'other';

/** All fields of the types `Usage` and `Message` of Anthropic's SDK. */
const noUsage = {
  cache_creation: null,
  cache_creation_input_tokens: null,
  cache_read_input_tokens: null,
  inference_geo: null,
  input_tokens: 0,
  output_tokens: 0,
  output_tokens_details: null,
  server_tool_use: null,
  service_tier: null,
};
const noEnd = { container: null, stop_details: null, stop_reason: null, stop_sequence: null };

/**
 * Makes the events of a message from a reply as it grows. A reply of Anthropic has its own events (`written-body.ts`
 * says which of its parts are opaque); of any other the texts, calls and thinking are told in Anthropic's words.
 */
export class MessageEvents {
  #index = -1;
  #open: OpenBlock | undefined;
  /** Whether the text that comes belongs to the open block although a delta of another kind stood between. */
  #goesOn = false;
  #part: Mark | undefined;
  #data = '';
  #start: Json = {};
  #end: Json | undefined;
  #hasBegun = false;

  constructor(
    private readonly head: MessageHead,
    private readonly emit: (event: MessageEvent) => boolean,
  ) {}

  /** A part begins, of which the next piece is a piece. */
  mark(mark: Mark): void {
    this.#part = mark;
    this.#data = '';
    if (mark.kind === 'opaque') return;
    if (mark.kind === 'text') this.#goesOn &&= this.#open === 'text';
    if (mark.kind !== 'text' || !this.#goesOn) this.#close();
    if (mark.kind !== 'call') return;
    const { id, name, extra = '{}' } = mark;
    this.#begin('other', { type: 'tool_use', id, name, input: {}, ...objectIn(extra) });
  }

  /** False once its reader does not take more. */
  write(text: string): boolean {
    const kind = this.#part?.kind ?? 'text';
    switch (kind) {
      case 'opaque':
        return this.#collect(text);
      case 'call':
        return this.#delta({ type: 'input_json_delta', partial_json: text });
      case 'thinking':
        if (this.#open !== 'thinking')
          this.#begin('thinking', { type: 'thinking', thinking: '', signature: '' });
        return this.#delta({ type: 'thinking_delta', thinking: text });
      case 'text':
        if (this.#open !== 'text') this.#begin('text', { type: 'text', text: '', citations: null });
        this.#goesOn = false;
        return this.#delta({ type: 'text_delta', text });
    }
  }

  /** Begins the message, if it has not. */
  begin(): void {
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    const { id, model, tokens } = this.head;
    const own = { id: `msg_${id}`, type: 'message', role: 'assistant', model, content: [] };
    const usage = { ...noUsage, input_tokens: tokens, output_tokens: 1, ...objectAt(this.#start, 'usage') };
    this.emit({
      type: 'message_start',
      message: { diagnostics: null, ...noEnd, ...this.#start, ...own, usage },
    });
  }

  /** Ends the message of a whole reply, whose pieces have all been written. */
  done(completion: Completion): void {
    this.begin();
    this.#close();
    this.emit(this.#end ? { type: 'message_delta', ...this.#end } : endOf(completion));
    this.emit({ type: 'message_stop' });
  }

  /** Ends the message of a reply that its provider has withheld. */
  refused(stop_details: object): void {
    this.begin();
    this.#close();
    const delta = { ...noEnd, stop_reason: 'refusal', stop_details };
    this.emit({ type: 'message_delta', delta, usage: { output_tokens: 1 } });
    this.emit({ type: 'message_stop' });
  }

  #begin(open: OpenBlock, block: Json): void {
    this.begin();
    this.#close();
    this.#open = open;
    this.#index += 1;
    this.emit({ type: 'content_block_start', index: this.#index, content_block: block });
  }

  #delta(delta: Json): boolean {
    return this.emit({ type: 'content_block_delta', index: this.#index, delta });
  }

  #close(): boolean {
    if (this.#open === undefined) return true;
    this.#open = undefined;
    return this.emit({ type: 'content_block_stop', index: this.#index });
  }

  #collect(text: string): boolean {
    const part = this.#part;
    this.#data += text;
    if (part?.kind !== 'opaque' || this.#data.length < part.length) return true;
    const data = objectIn(this.#data);
    if (part.provider !== 'anthropic') return true;
    switch (part.role) {
      case 'start':
        this.#start = data;
        return true;
      case 'end':
        this.#end = data;
        return true;
      case 'delta':
        if (data.type === 'end') return this.#close();
        this.#goesOn = true;
        if (this.#open !== 'text') this.#begin('text', { type: 'text', text: '', citations: null });
        return this.#delta(data);
      default:
        return this.#block(data);
    }
  }

  /** A whole block, or the signature of the thinking before it. */
  #block({ block, deltas, signature }: Json): boolean {
    if (signature !== undefined) {
      if (this.#open !== 'thinking')
        this.#begin('thinking', { type: 'thinking', thinking: '', signature: '' });
      this.#delta({ type: 'signature_delta', signature });
      return this.#close();
    }
    if (!isObject(block)) return true;
    this.#begin('other', block as Json);
    for (const delta of Array.isArray(deltas) ? deltas : []) this.#delta(delta);
    return this.#close();
  }
}

const objectIn = (text: string): Json => {
  const value = readJson(text);
  return isObject(value) ? (value as Json) : {};
};

const objectAt = (object: Json, key: string): Json => (isObject(object[key]) ? (object[key] as Json) : {});

/** The end of a reply by a provider that has other words for it. */
function endOf(completion: Completion): MessageEvent {
  const { kind } = completion;
  const stop = hasCalls(completion) ? 'tool_use' : 'end_turn';
  const delta = { ...noEnd, stop_reason: kind === 'truncated' ? 'max_tokens' : stop };
  return { type: 'message_delta', delta, usage: usageOf(completion) };
}

/** Anthropic counts the tokens that were read from the cache, or written to it, beside the others. */
function usageOf({ usage }: Completion): Json {
  const { inputTokens = 0, outputTokens = 0, cachedTokens, cacheWriteTokens } = usage ?? {};
  const { reasoningTokens } = usage ?? {};
  return {
    input_tokens: Math.max(0, inputTokens - (cachedTokens ?? 0) - (cacheWriteTokens ?? 0)),
    output_tokens: outputTokens,
    cache_read_input_tokens: cachedTokens ?? null,
    cache_creation_input_tokens: cacheWriteTokens ?? null,
    output_tokens_details: reasoningTokens === undefined ? null : { thinking_tokens: reasoningTokens },
    server_tool_use: null,
  };
}

/** The whole message, folded from the events of its reply. */
export function toMessage(head: MessageHead, completion: Completion): Json {
  const folded = new Folded();
  const events = new MessageEvents(head, (event) => folded.take(event));
  for (const { text, mark } of partsOf(completion)) {
    if (mark) events.mark(mark);
    events.write(text);
  }
  events.done(completion);
  return folded.message;
}

/** The whole message of a reply that its provider has withheld. */
export function toRefusedMessage(head: MessageHead, stopDetails: object): Json {
  const folded = new Folded();
  new MessageEvents(head, (event) => folded.take(event)).refused(stopDetails);
  return folded.message;
}

/** The pieces of a tape, each with its mark. */
function* partsOf({ text, marks = [] }: Completion): Generator<{ text: string; mark?: Mark }> {
  const head = text.slice(0, marks[0]?.at);
  if (head !== '') yield { text: head };
  for (const [n, mark] of marks.entries()) yield { mark, text: text.slice(mark.at, marks[n + 1]?.at) };
}

/** Arguments that are cut, or no JSON, are none. */
function inputOf(json: string): unknown {
  try {
    return parseExactly(json);
  } catch {
    return {};
  }
}

/** Does what Anthropic's own clients do with the events (`MessageStream` of its SDK). */
class Folded {
  message: Record<string, unknown> = {};
  readonly #content: Record<string, unknown>[] = [];
  #json = '';

  take(event: MessageEvent): boolean {
    const {
      type,
      message,
      delta,
      usage,
      content_block: block,
    } = event as MessageEvent & Record<string, Json>;
    const open = this.#content.at(-1) ?? {};
    switch (type) {
      case 'message_start':
        this.message = { ...message, content: this.#content };
        break;
      case 'content_block_start':
        this.#content.push({ ...block });
        this.#json = '';
        break;
      case 'content_block_delta':
        this.#add(open, delta ?? {});
        break;
      case 'content_block_stop':
        if (this.#json !== '') open.input = inputOf(this.#json);
        break;
      case 'message_delta': {
        const given = Object.entries(usage ?? {}).filter(([, count]) => count !== null);
        const { usage: before, ...others } = this.message;
        const counts = { ...(before as Json), ...Object.fromEntries(given) };
        const { type: _, delta: ended, usage: __, ...own } = event;
        this.message = { ...others, ...own, ...(ended as Json), usage: counts };
      }
    }
    return true;
  }

  #add(open: Record<string, unknown>, { type, ...delta }: Json): void {
    if (type === 'input_json_delta') this.#json += String(delta.partial_json);
    else if (type === 'citations_delta')
      open.citations = [...((open.citations as unknown[] | null) ?? []), delta.citation];
    else for (const [key, piece] of Object.entries(delta)) open[key] = `${open[key] ?? ''}${piece}`;
  }
}
