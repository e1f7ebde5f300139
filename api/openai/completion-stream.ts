import type { Response as HttpResponse } from 'express';
import type { ProviderId, Target } from '../../shared/contract.js';
import { Failure } from '../../shared/failures.js';
import { writerOf } from '../../shared/protocol/outcome.js';
import type { ChatReply, StreamOptions } from '../chat/chat-command.js';
import type { Completion } from '../chat/chat-result.js';
import { EventResponse } from '../http/event-response.js';
import { recordFailure } from '../http/problem.js';
import { type CompletionHead, finishReasonOf, headOf, nameOf, usageOf } from './completion.js';
import { toOpenAiError } from './openai-error.js';

type Sink = StreamOptions['sink'];

interface CompletionStreamOptions {
  response: HttpResponse;
  /** Asked when the stream begins: until then the chat may turn out to be another one's. */
  head: () => CompletionHead;
  /** The provider and model that the request names. */
  provider: ProviderId;
  /** Names in a header the fields that an answer of this provider ignores. */
  markIgnored: (writer: ProviderId) => void;
  /** Whether the token counts come at the end. */
  includesUsage: boolean;
}

/**
 * A reply as OpenAI's chunks (https://platform.openai.com/docs/api-reference/chat-streaming): one with the role, one
 * for each piece of the text, one with the finish reason, one with the token counts if they are asked for, and
 * `[DONE]`. The response begins with the first piece, so that a chat that fails before has an ordinary error. One that
 * fails later ends with an `error` and no `[DONE]`, which clients throw.
 */
export class CompletionStream implements Sink {
  readonly #options: CompletionStreamOptions;
  readonly #events: EventResponse;
  #head: CompletionHead | undefined;
  #hasText = false;

  constructor(options: CompletionStreamOptions) {
    this.#options = options;
    this.#events = new EventResponse(options.response);
  }

  begin(writer?: Target): void {
    const { provider } = writer ?? this.#options;
    if (this.#events.hasBegun) return;
    this.#options.markIgnored(provider);
    if (!this.#events.begin({ 'X-LLM-Provider': provider })) return;
    const head = this.#headOnce();
    this.#head = { ...head, model: nameOf(writer) ?? head.model };
    this.#sendDelta({ role: 'assistant', content: '', refusal: null });
  }

  write(text: string): boolean {
    this.begin();
    this.#hasText = true;
    return this.#sendDelta({ content: text });
  }

  drained(): Promise<void> {
    return this.#events.drained();
  }

  /** Ends the stream with the reply, or with what it failed with; throws that when the response has not begun. */
  async end(replying: Promise<ChatReply>): Promise<void> {
    try {
      const reply = await replying;
      if (reply.kind === 'completed') this.#complete(reply.completion);
    } catch (error) {
      this.#fail(error);
    }
  }

  #complete(completion: Completion): void {
    this.begin(writerOf(completion));
    this.#sendDelta({}, finishReasonOf(completion));
    const usage = usageOf(completion);
    if (this.#options.includesUsage && usage) this.#send({ choices: [], usage });
    this.#events.end({ data: '[DONE]' });
  }

  /** An unexpected error goes to the handler that logs them. */
  #fail(error: unknown): void {
    if (!this.#events.hasBegun || !(error instanceof Failure)) throw error;
    recordFailure(this.#options.response, error);
    if (error.code === 'content_blocked' && this.#hasText) {
      this.#sendDelta({}, 'content_filter');
      this.#events.end({ data: '[DONE]' });
    } else this.#events.end({ data: JSON.stringify(toOpenAiError(error)) });
  }

  #sendDelta(delta: object, finishReason: string | null = null): boolean {
    const choice = { index: 0, delta, logprobs: null, finish_reason: finishReason };
    return this.#send({ choices: [choice], ...(this.#options.includesUsage && { usage: null }) });
  }

  #send(chunk: object): boolean {
    const data = { ...headOf('chat.completion.chunk', this.#headOnce()), ...chunk };
    return this.#events.send({ data: JSON.stringify(data) });
  }

  #headOnce(): CompletionHead {
    this.#head ??= this.#options.head();
    return this.#head;
  }
}
