import { isBlank } from '../../shared/conversation.js';
import { type ErrorFacts, toFailure, unusableAnswer } from './error-classification.js';
import type { FinishReason, ProviderEvent, Usage } from './provider.js';

/** What an adapter reads out of an answer, or out of one piece of a streamed answer. */
export interface ReplyPart {
  text?: string | undefined;
  /** Only once the provider has said that the reply is complete. */
  reason?: FinishReason | undefined;
  model?: string | undefined;
  usage?: { inputTokens?: number | undefined; outputTokens?: number | undefined } | undefined;
}

/** One call of a provider. */
export interface ProviderCall {
  /** The model asked for, told in the finish event when the answer does not name one. */
  model: string;
  /** Ends the call. */
  signal: AbortSignal;
  /** Calls the SDK once and reads its answer; whatever the SDK or a schema throws may pass. */
  parts: (signal: AbortSignal) => AsyncIterable<ReplyPart>;
  readError: (error: unknown) => ErrorFacts;
}

/**
 * Runs one call under the rules every provider shares:
 *
 * 1. the signal ends it at once with its own reason, whatever the SDK makes of an abort;
 * 2. its socket is closed however it ends, also when the caller stops listening;
 * 3. anything the SDK or a schema throws becomes a classified `Failure`;
 * 4. a reply that is blank, or that the provider did not finish, is a failure too.
 */
export async function* callProvider({
  model,
  signal,
  parts,
  readError,
}: ProviderCall): AsyncGenerator<ProviderEvent> {
  signal.throwIfAborted();
  const over = new AbortController();
  // Passed on by hand: a composite signal for every call costs several times as much.
  const abort = () => over.abort(signal.reason);
  signal.addEventListener('abort', abort);
  try {
    yield* toEvents(untilAborted(parts(over.signal), signal), model);
  } catch (error) {
    signal.throwIfAborted();
    throw toFailure(error, readError(error));
  } finally {
    signal.removeEventListener('abort', abort);
    over.abort(callIsOver);
  }
}

// One reason for all: making an exception for every call costs more than the abort itself.
const callIsOver = new Error('The call is over.');

/** Does not wait for the SDK after an abort: some things it waits for, such as credentials, do not see the signal. */
async function* untilAborted(
  parts: AsyncIterable<ReplyPart>,
  signal: AbortSignal,
): AsyncGenerator<ReplyPart> {
  const iterator = parts[Symbol.asyncIterator]();
  const aborted = Promise.withResolvers<never>();
  aborted.promise.catch(() => {});
  const abort = () => aborted.reject(signal.reason);
  signal.addEventListener('abort', abort);
  try {
    for (;;) {
      const next = await Promise.race([iterator.next(), aborted.promise]);
      // Two of the SDKs end a stream silently when it is aborted.
      signal.throwIfAborted();
      if (next.done) return;
      yield next.value;
    }
  } finally {
    signal.removeEventListener('abort', abort);
    iterator.return?.().catch(() => {});
  }
}

async function* toEvents(parts: AsyncIterable<ReplyPart>, model: string): AsyncGenerator<ProviderEvent> {
  let held = '';
  let spoken = false;
  const end: ReplyPart = { model };
  for await (const part of parts) {
    end.reason = part.reason ?? end.reason;
    end.model = part.model ?? end.model;
    end.usage = mergeUsage(end.usage, part.usage);
    if (!part.text || part.reason === 'blocked') continue;
    held += part.text;
    // A leading blank is held back: should nothing follow it, the call fails, and then nobody has heard anything.
    if (!spoken && isBlank(held)) continue;
    spoken = true;
    yield { type: 'delta', text: held };
    held = '';
  }
  if (end.reason === undefined) throw unusableAnswer('unfinished');
  if (end.reason !== 'blocked' && !spoken) throw unusableAnswer('blank');
  yield { type: 'finish', reason: end.reason, model: end.model ?? model, ...fullUsage(end.usage) };
}

function mergeUsage(before: ReplyPart['usage'], now: ReplyPart['usage']): ReplyPart['usage'] {
  return {
    inputTokens: now?.inputTokens ?? before?.inputTokens,
    outputTokens: now?.outputTokens ?? before?.outputTokens,
  };
}

function fullUsage(usage: ReplyPart['usage']): { usage?: Usage } {
  const { inputTokens, outputTokens } = usage ?? {};
  return inputTokens === undefined || outputTokens === undefined
    ? {}
    : { usage: { inputTokens, outputTokens } };
}
