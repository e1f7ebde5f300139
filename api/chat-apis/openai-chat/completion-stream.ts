import type { Response as HttpResponse } from 'express';
import type { Failure } from '../../../shared/failures.js';
import { writerOf } from '../../../shared/protocol/outcome.js';
import type { Mark } from '../../../shared/protocol/parts.js';
import type { Completion } from '../../chat/chat-result.js';
import { changesHeader } from '../../chat/conversation-changes.js';
import type { ReplySource } from '../../chat/reply-stream.js';
import { EventResponse } from '../../http/event-response.js';
import type { ReplySink } from '../serve.js';
import { type CompletionHead, finishReasonOf, headOf, nameOf, toToolCall, usageOf } from './completion.js';
import type { MarkIgnored } from './completion-request.js';
import { PartsBeforeCall } from './extra-content.js';
import { toOpenAiError } from './openai-error.js';

interface CompletionStreamOptions {
  response: HttpResponse;
  /** Asked when the stream begins: until then the chat may turn out to be another one's. */
  head: () => CompletionHead;
  /** Names in a header the fields that the answer ignores. */
  markIgnored: MarkIgnored;
  /** Whether the token counts come at the end. */
  includesUsage: boolean;
  /** How the conversation was changed before its job was made. */
  changes?: readonly string[] | undefined;
}

/**
 * A reply as OpenAI's chunks (https://platform.openai.com/docs/api-reference/chat-streaming): one with the role, one
 * for each piece of the text, for each call one with its name and one for each piece of its arguments, one with the
 * finish reason, one with the token counts if they are asked for, and `[DONE]`. The response begins with the first
 * piece, so that a chat that fails before has an ordinary error. One that fails later ends with an `error` and no
 * `[DONE]`, which clients throw.
 */
export class CompletionStream implements ReplySink {
  readonly #events: EventResponse;
  #head: CompletionHead | undefined;
  #hasText = false;
  #callCount = 0;
  /** The mark of the part that the next piece belongs to; undefined in a text at the beginning. */
  #part: Mark | undefined;
  /** The opaque part, as far as it has come. */
  #data = '';
  readonly #before = new PartsBeforeCall();

  constructor(private readonly options: CompletionStreamOptions) {
    this.#events = new EventResponse(options.response);
  }

  get hasBegun(): boolean {
    return this.#events.hasBegun;
  }

  begin({ writer, ignored, changes }: ReplySource = {}): void {
    if (this.#events.hasBegun) return;
    const head = this.options.head();
    const { provider } = writer ?? head;
    this.options.markIgnored(provider, ignored);
    const headers = { 'X-LLM-Provider': provider, ...changesHeader(this.options.changes, changes) };
    if (!this.#events.begin(headers)) return;
    this.#head = { ...head, provider, model: nameOf(writer) ?? head.model };
    this.#sendDelta({ role: 'assistant', content: '', refusal: null });
  }

  mark(mark: Mark): void {
    this.#part = mark;
    this.#data = '';
    if (mark.kind === 'text') this.#before.add({ kind: 'text', text: '' });
    if (mark.kind !== 'call' || this.#head === undefined) return;
    const extra = this.#before.take();
    const call = toToolCall({ ...mark, arguments: '' }, extra);
    this.#sendDelta({ tool_calls: [{ index: this.#callCount++, ...call }] });
  }

  write(text: string): boolean {
    this.begin();
    if (this.#part?.kind === 'call') {
      const piece = { index: this.#callCount - 1, function: { arguments: text } };
      return this.#sendDelta({ tool_calls: [piece] });
    }
    if (this.#part?.kind === 'opaque') return this.#collect(this.#part, text);
    if (this.#part?.kind === 'thinking') return true;
    this.#hasText = true;
    this.#before.addText(text);
    return this.#sendDelta({ content: text });
  }

  #collect({ length, ...part }: Extract<Mark, { kind: 'opaque' }>, text: string): true {
    this.#data += text;
    if (this.#data.length === length) this.#before.add({ ...part, data: this.#data });
    return true;
  }

  drained(): Promise<void> {
    return this.#events.drained();
  }

  done(completion: Completion): void {
    const { ignored, changes } = completion;
    this.begin({ writer: writerOf(completion), ignored, changes });
    this.#sendDelta({}, finishReasonOf(completion));
    const usage = usageOf(completion);
    if (this.options.includesUsage && usage) this.#send({ choices: [], usage });
    this.#events.end({ data: '[DONE]' });
  }

  fail(failure: Failure): void {
    // A call that may be cut is never shown as a part of a reply that has ended.
    if (failure.code === 'content_blocked' && this.#hasText && this.#callCount === 0) {
      this.#sendDelta({}, 'content_filter');
      this.#events.end({ data: '[DONE]' });
    } else this.#events.end({ data: JSON.stringify(toOpenAiError(failure)) });
  }

  #sendDelta(delta: object, finishReason: string | null = null): boolean {
    const choice = { index: 0, delta, logprobs: null, finish_reason: finishReason };
    return this.#send({ choices: [choice], ...(this.options.includesUsage && { usage: null }) });
  }

  /** False as well when the client had left before the response began. */
  #send(chunk: object): boolean {
    if (this.#head === undefined) return false;
    const data = { ...headOf('chat.completion.chunk', this.#head), ...chunk };
    return this.#events.send({ data: JSON.stringify(data) });
  }
}
