import { randomUUID } from 'node:crypto';
import type { Outcome } from '../../shared/protocol/outcome.js';
import type { JobResult } from '../fleet-link/chat-receiver.js';
import type { FleetLink } from '../fleet-link/fleet-link.js';
import { type ChatCommand, type StreamOptions, throwIfLeft } from './chat-command.js';
import type { LiveChat, WaitingRequest } from './live-chat.js';
import { ReplyStream, resendLength } from './reply-stream.js';

/** How a request waits for its chat. */
export interface RequestOptions {
  /** Aborts when the request may no longer be answered. */
  readonly signal: AbortSignal;
  /** In milliseconds since the epoch, as is `startBy`. */
  readonly waitUntil: number;
  /** Until when a reply that is read as it is written has to begin; absent means that it may begin at any time. */
  readonly startBy?: number | undefined;
  /** Present when the request reads the reply as it is written. */
  readonly stream?: StreamOptions | undefined;
  /** The records of the chat that the request joins: its worker does not know this reader. Absent for a new chat. */
  readonly joined?: JobResult | undefined;
  readonly link: Pick<FleetLink, 'requestResend'>;
}

/** One request that waits for a chat, and later perhaps follows it in the background. Has its timers and its signal. */
export class AttachedRequest implements WaitingRequest {
  readonly chat: LiveChat;
  readonly reader: ReplyStream | undefined;
  readonly readerName: string | undefined;
  /** The add of the chat's job; resolved for a request that only reads. */
  added: Promise<void> = Promise.resolve();
  isInBackground = false;
  readonly #options: RequestOptions;
  readonly #outcome = Promise.withResolvers<Outcome | undefined>();
  /** The outcome; undefined when the deadline passes or the signal aborts first. Rejects with what `fail` is given. */
  readonly outcome = this.#outcome.promise;
  readonly #stop = () => this.#outcome.resolve(undefined);
  #onFailure: (error: unknown) => void = this.#outcome.reject;
  #deadline: NodeJS.Timeout;
  #begin: NodeJS.Timeout | undefined;

  /** `now` is the clock of the deadlines. */
  constructor(chat: LiveChat, options: RequestOptions, now: number) {
    const { signal, waitUntil, startBy, stream, joined } = options;
    this.chat = chat;
    this.#options = options;
    this.outcome.catch(() => undefined);
    this.readerName = stream && joined ? randomUUID().slice(0, 8) : undefined;
    this.reader = stream && this.#openReader(stream);
    this.#deadline = setTimeout(this.#stop, Math.max(0, waitUntil - now));
    const stopUnlessBegun = () => this.reader?.hasBegun || this.#stop();
    if (this.reader && startBy !== undefined) this.#begin = setTimeout(stopUnlessBegun, startBy - now);
    if (signal.aborted) this.#stop();
    else signal.addEventListener('abort', this.#stop);
  }

  settle(outcome: Outcome): void {
    this.release();
    this.#outcome.resolve(outcome);
  }

  /** Ends the wait with an error; in the background the request leaves the chat. */
  fail(error: unknown): void {
    this.#onFailure(error);
  }

  /** Follows the chat without its caller, until it ends, fails or the time is over; the last two call `leave`. */
  followInBackground(forMs: number, leave: (code: 'queue_unavailable' | 'timeout') => void): void {
    this.release();
    this.isInBackground = true;
    this.#onFailure = () => leave('queue_unavailable');
    this.#deadline = setTimeout(() => leave('timeout'), Math.max(0, forMs));
  }

  release(): void {
    clearTimeout(this.#deadline);
    clearTimeout(this.#begin);
    this.#options.signal.removeEventListener('abort', this.#stop);
  }

  /** The caller has gone, or has all of the reply: nothing more is read. */
  [Symbol.dispose](): void {
    if (this.reader === undefined) return;
    this.reader.close();
    if (this.chat.isStored && !this.reader.isFinished) this.#ask({ from: 0, max: 1, left: true });
  }

  #openReader(stream: StreamOptions): ReplyStream {
    const { joined, signal } = this.#options;
    const reader = new ReplyStream({
      ...stream,
      signal,
      isJoined: joined !== undefined,
      requestResend: (offset) => this.#ask({ from: offset, max: resendLength }),
      onFailure: (failure) => this.fail(failure),
    });
    if (joined?.state === 'running') reader.askFirst();
    return reader;
  }

  #ask(place: { from: number; max: number; left?: true }): void {
    this.#options.link.requestResend(this.chat.job, { reader: this.readerName, ...place });
  }
}

/**
 * The outcome of the chat, undefined when the request has stopped waiting. Another process may hear first that a user
 * was removed, and have the user's chats cancelled: throws `unauthorized` then.
 */
export async function outcomeFor(
  caller: Pick<ChatCommand, 'signal' | 'confirmAccess' | 'provider'>,
  request: AttachedRequest,
): Promise<Outcome | undefined> {
  const outcome = await request.outcome;
  if (outcome?.kind === 'cancelled') {
    await caller.confirmAccess?.();
    throwIfLeft(caller);
  }
  return outcome;
}
