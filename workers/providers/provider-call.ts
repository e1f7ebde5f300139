import { givenFields } from '../../shared/given-fields.js';
import type { Usage } from '../../shared/protocol/attempts.js';
import { classifyError, type ErrorFacts, unusableAnswer } from './error-classification.js';
import type { FinishReason, OnDelta, ProviderReply, ProviderRequest } from './provider.js';
import { type CallPiece, Tape } from './tape.js';

/** The parts that an adapter reads from an answer, or from one piece of a streamed answer. */
export interface ReplyPart {
  /** Comes before the call of the same part. */
  text?: string | undefined;
  call?: CallPiece | undefined;
  /** Only once the provider has said that the reply is complete; `malformed` if its model could not write a call. */
  reason?: FinishReason | 'malformed' | undefined;
  model?: string | undefined;
  usage?: { [Count in keyof Usage]?: number | undefined } | null | undefined;
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
 * 4. a reply that is blank, unless its caller asked for such an end, that the provider did not finish, or whose calls
 *    or format cannot be used (`Tape`), is a failure too.
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
  request: ProviderRequest,
  onDelta: OnDelta,
): Promise<ProviderReply> {
  const { signal, onActivity = ignore } = request;
  const tape = new Tape(request, onDelta);
  const end: ReplyPart = {};
  for await (const part of parts) {
    signal.throwIfAborted();
    onActivity();
    end.reason = part.reason ?? end.reason;
    end.model = part.model ?? end.model;
    if (part.usage) end.usage = { ...end.usage, ...givenFields(part.usage) };
    if (end.reason === 'blocked') continue;
    if (part.text) tape.addText(part.text);
    if (part.call) tape.addCall(part.call);
  }
  const usage = completeUsage(end.usage);
  if (end.reason === undefined) throw unusableAnswer('unfinished', usage);
  if (end.reason === 'malformed') throw unusableAnswer('malformed_call', usage);
  const reply = tape.end(end.reason, usage);
  return { ...reply, reason: end.reason, model: end.model ?? request.model, ...(usage && { usage }) };
}

function completeUsage(counted: ReplyPart['usage']): Usage | undefined {
  const { inputTokens, outputTokens, ...others } = counted ?? {};
  if (inputTokens === undefined || outputTokens === undefined) return undefined;
  return { inputTokens, outputTokens, ...givenFields(others) };
}
