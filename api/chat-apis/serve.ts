import type { Response as HttpResponse } from 'express';
import { Failure } from '../../shared/failures.js';
import { type ChatContent, toWritten, unfitProviders } from '../../shared/protocol/chat-content.js';
import type { ChatCommand, ChatReply, StreamOptions } from '../chat/chat-command.js';
import type { Completion } from '../chat/chat-result.js';
import type { ChatService } from '../chat/chat-service.js';
import type { DeltaSink } from '../chat/reply-stream.js';
import { writeTexts } from '../http/json-body.js';
import type { Applied } from '../http/prefer.js';
import { elapsedMsOf, recordFailure } from '../http/problem.js';
import { sendAccepted } from './mount.js';

/** A chat as its API has read it from a request. */
export interface AskedChat {
  readonly content: ChatContent;
  readonly command: Omit<ChatCommand, 'written' | 'unfitFor' | 'bytes' | 'elapsedMs' | 'stream'>;
  readonly applied: Applied;
  readonly form: ReplyForm;
}

/** How a reply is written to the client of one request. */
export interface ReplyForm {
  /** Sends a whole reply. */
  send(completion: Completion): void;
  /** Begins to write the reply as it comes; absent when the client wants it whole. */
  readonly stream?: (() => StreamOptions & { readonly sink: ReplySink }) | undefined;
}

/** A response that is written piece by piece. */
export interface ReplySink extends DeltaSink {
  /** Whether a part of the response is sent: then a failure can only be one of its events. */
  readonly hasBegun: boolean;
  /** Ends it with what is left of the reply. */
  done(completion: Completion): void;
  /** Ends it with a failure. */
  fail(failure: Failure): void;
}

/** Runs the chat of a request, and answers with its reply: as a stream, whole, or with 202. Throws its failures. */
export async function serveChat(
  response: HttpResponse,
  { content, command, applied, form }: AskedChat,
  chatService: Pick<ChatService, 'createChat'>,
): Promise<void> {
  const { texts, bytes } = await writeTexts(response, content);
  // From here on it may begin by itself, so nothing that waits comes before.
  const stream = command.storeOptions?.isAsync ? undefined : form.stream?.();
  const replying = chatService.createChat({
    ...command,
    bytes,
    written: toWritten(content, texts),
    unfitFor: unfitProviders(content, command),
    stream,
    elapsedMs: elapsedMsOf(response),
  });
  if (stream) return sendStream(response, stream.sink, replying);
  const reply = await replying;
  if (reply.kind === 'accepted') sendAccepted(response, reply, applied);
  else form.send(reply.completion);
}

/** Ends a stream with the reply, or with its failure; throws that when the response has not begun. */
export async function sendStream(
  response: HttpResponse,
  sink: ReplySink,
  replying: Promise<ChatReply>,
): Promise<void> {
  try {
    const reply = await replying;
    if (reply.kind === 'completed') sink.done(reply.completion);
  } catch (error) {
    // An unexpected error goes to the handler that logs them.
    if (!sink.hasBegun || !(error instanceof Failure)) throw error;
    recordFailure(response, error);
    sink.fail(error);
  }
}
