import { isBlank } from '../../shared/conversation.js';
import { classifyError, type ErrorFacts, unusableAnswer } from './error-classification.js';
import type { FinishReason, OnDelta, ProviderReply, ProviderRequest, Usage } from './provider.js';

/** The parts that an adapter reads from an answer, or from one piece of a streamed answer. */
export interface ReplyPart {
  text?: string | undefined;
  /** Only once the provider has said that the reply is complete. */
  reason?: FinishReason | undefined;
  model?: string | undefined;
  usage?: { inputTokens?: number | undefined; outputTokens?: number | undefined } | undefined;
}

/** One call of a provider. */
export interface ProviderCall {
  request: ProviderRequest;
  /** Calls the SDK once, with a signal that ends the call, and reads its answer; errors of SDK and schema may pass. */
  parts: (request: ProviderRequest) => AsyncIterable<ReplyPart>;
  readError: (error: unknown) => ErrorFacts;
}

/**
 * Runs one call under the rules every provider shares:
 *
 * 1. the request's signal ends it at once with its own reason, because some steps of an SDK, such as reading
 *    credentials, ignore an abort;
 * 2. its socket is closed however it ends;
 * 3. anything the SDK or a schema throws becomes a classified `Failure`;
 * 4. a reply that is blank, unless its caller asked for such an end, or that the provider did not finish, is a
 *    failure too.
 */
export async function callProvider(call: ProviderCall, onDelta: OnDelta = ignore): Promise<ProviderReply> {
  const { signal } = call.request;
  signal.throwIfAborted();
  const over = new AbortController();
  const aborted = Promise.withResolvers<never>();
  // Passed on by hand: a composite signal for every call costs several times as much.
  const abort = () => {
    aborted.reject(signal.reason);
    over.abort(signal.reason);
  };
  signal.addEventListener('abort', abort);
  try {
    const request = { ...call.request, signal: over.signal };
    return await Promise.race([aborted.promise, collect(call.parts(request), request, onDelta)]);
  } catch (error) {
    signal.throwIfAborted();
    throw classifyError(error, call.readError(error));
  } finally {
    signal.removeEventListener('abort', abort);
    over.abort(callIsOver);
  }
}

const ignore = () => {};

// One reason for all: making an exception for every call costs more than the abort itself.
const callIsOver = new Error('The call is over.');

/** Drops parts that arrive after the signal. The model is reported when the answer does not name one. */
async function collect(
  parts: AsyncIterable<ReplyPart>,
  { signal, model, onActivity = ignore, mayBeBlankAt = [] }: ProviderRequest,
  onDelta: OnDelta,
): Promise<ProviderReply> {
  let text = '';
  let hasBegun = false;
  const end: ReplyPart = {};
  for await (const part of parts) {
    signal.throwIfAborted();
    onActivity();
    end.reason = part.reason ?? end.reason;
    end.model = part.model ?? end.model;
    end.usage = mergeUsage(end.usage, part.usage);
    if (!part.text || part.reason === 'blocked') continue;
    text += part.text;
    // A leading blank is held back: if the text ends with it, the call fails, and then no reader has seen a part.
    if (!hasBegun && isBlank(text)) continue;
    // Not cut out of the text: a piece that is keeps all of it in memory, as it was then.
    onDelta(hasBegun ? part.text : text);
    hasBegun = true;
  }
  if (end.reason === undefined) throw unusableAnswer('unfinished');
  const reply = { text, reason: end.reason, model: end.model ?? model, ...completeUsage(end.usage) };
  if (reply.reason !== 'blocked' && !hasBegun) takeBlank(reply, mayBeBlankAt, onDelta);
  return reply;
}

function takeBlank(
  { text, reason, usage }: ProviderReply,
  allowedAt: readonly FinishReason[],
  onDelta: OnDelta,
): void {
  if (!allowedAt.includes(reason)) throw unusableAnswer('blank', usage);
  if (text !== '') onDelta(text);
}

function mergeUsage(before: ReplyPart['usage'], now: ReplyPart['usage']): ReplyPart['usage'] {
  return {
    inputTokens: now?.inputTokens ?? before?.inputTokens,
    outputTokens: now?.outputTokens ?? before?.outputTokens,
  };
}

function completeUsage({ inputTokens, outputTokens }: ReplyPart['usage'] = {}): { usage?: Usage } {
  return inputTokens === undefined || outputTokens === undefined
    ? {}
    : { usage: { inputTokens, outputTokens } };
}
