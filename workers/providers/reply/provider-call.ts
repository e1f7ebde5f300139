/**
 * How a reply is read, the same for all providers:
 *
 * 1. An adapter makes parts of the answer, or of each of its pieces. It has `answer-fields.ts` for token counts, words
 *    and errors, and `exact-json.ts` for the arguments of calls, of which no number loses a digit.
 * 2. `callProvider`, in this file, takes the parts one by one, under the rules that stand there.
 * 3. `stop-text.ts` ends the text before a text to stop at, where the provider cannot be asked to.
 * 4. `tape.ts` joins the parts to one text, hands out each piece, and refuses what cannot be used.
 * 5. `tape-marks.ts` makes the marks that say where calls and opaque blocks begin.
 */

import type { ProviderId } from '../../../shared/contracts/contract.js';
import { Failure } from '../../../shared/failures.js';
import { givenFields } from '../../../shared/json/json.js';
import type { Usage } from '../../../shared/protocol/attempts.js';
import { withTimeout } from '../../../shared/runtime/retry.js';
import {
  classifyError,
  type ErrorFacts,
  refusedAnswer,
  unusableAnswer,
} from '../errors/error-classification.js';
import type { FinishReason, OnDelta, ProviderReply, ProviderRequest } from '../provider.js';
import { type EndWord, laterCounts } from './answer-fields.js';
import type { Heard } from './call-meter.js';
import { OpenTape } from './open-tape.js';
import { StopText } from './stop-text.js';
import { type CallPiece, type ReplyTape, Tape } from './tape.js';
import type { OpaqueBlock } from './tape-marks.js';

/** The parts that an adapter reads from an answer, or a piece of one, in the order of these fields. */
export interface ReplyPart {
  /** A piece of thinking in words; an empty one says that thinking begins. */
  thinking?: string | undefined;
  opaque?: OpaqueBlock | undefined;
  /** The length of a piece of a block that its adapter holds until all of it is there. */
  held?: number | undefined;
  /** Whether a text begins here, also behind another text. */
  isNewText?: boolean | undefined;
  text?: string | undefined;
  call?: CallPiece | undefined;
  /** How the reply ends; only once the provider has said that it is complete. */
  reason?: EndWord | undefined;
  /** The kind of conversations for which a classifier has blocked this one; absent where none has. */
  refusal?: string | undefined;
  /** Whether the provider has ended the reply; its reason may be missing. */
  isWhole?: boolean | undefined;
  model?: string | undefined;
  /** The tier of service that answered, and the provider's id of the answer where no header has it. */
  tier?: string | null | undefined;
  answerId?: string | null | undefined;
  usage?: { [Count in keyof Usage]?: number | undefined } | null | undefined;
}

/** One call of a provider. */
interface ProviderCall {
  provider: ProviderId;
  request: ProviderRequest;
  /** Calls the SDK once, with a signal that ends the call, and reads its answer; errors of SDK and schema may pass. */
  parts: (request: ProviderRequest) => AsyncIterable<ReplyPart>;
  readError: (error: unknown) => ErrorFacts;
  /** The texts to stop at, where the provider cannot be asked to. */
  stops?: readonly string[] | undefined;
}

/**
 * Runs one call under the rules every provider shares:
 *
 * 1. the request's signal ends it at once with its own reason, because some steps of an SDK, such as reading
 *    credentials, ignore an abort;
 * 2. its socket is closed however it ends;
 * 3. anything the SDK or a schema throws becomes a classified `Failure`;
 * 4. once the provider has said that the reply is complete, nothing makes that a failure: the call waits a moment for
 *    the token counts, and silence, errors behind the reply, and a missing or new word for its end count for nothing;
 * 5. a text to stop at that the provider does not know ends the reply and its reading: the token counts of a stream are
 *    unknown then;
 * 6. a reply that a classifier has refused before any part of it is a failure that another provider may mend;
 * 7. the request's meter hears what was told of the cost, however the call ends;
 * 8. a reply that is blank, unless its caller asked for such an end, that the provider did not finish, or whose calls
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
  const request = { ...call.request, signal: over.signal };
  const tape = new (request.body ? OpenTape : Tape)(call.provider, request, onDelta);
  const answer = new Answer(request, tape, call.stops && new StopText(call.stops));
  try {
    return await Promise.race([aborted.promise, answer.read(call.parts(request))]);
  } catch (error) {
    // A limit of time that passes behind a complete reply comes too late for it.
    if (signal.reason instanceof Failure && answer.isComplete) return answer.reply();
    signal.throwIfAborted();
    throw classifyError(error, { ...call.readError(error), model: request.model });
  } finally {
    signal.removeEventListener('abort', abort);
    over.abort(callIsOver);
    call.request.meter?.heard(answer.heard);
  }
}

const ignore = () => {};

// One reason for all: making an exception for every call costs more than the abort itself.
const callIsOver = new Error('The call is over.');

/** The error of `withTimeout` for a part that has not come in time. */
const tooLate = new Error('Nothing has come in time.');

/** In milliseconds. The token counts come at once, or never, and the end may: https://github.com/maximhq/bifrost/issues/6784 */
const maxWaitForUsageMs = 2000;

/** The answer of one call, as it is read. The model is reported when the answer does not name one. */
class Answer {
  readonly #end: ReplyPart = {};
  #hasBegun = false;
  #isStopped = false;
  #bytes = 0;

  constructor(
    private readonly request: ProviderRequest,
    private readonly tape: ReplyTape,
    private readonly stop: StopText | undefined,
  ) {}

  /**
   * Whether the provider has said that the reply is complete: then neither silence nor an error ends it otherwise. A
   * word that is new here may stand beside every piece.
   */
  get isComplete(): boolean {
    const { reason = 'unknown', isWhole = false } = this.#end;
    return isWhole || reason !== 'unknown';
  }

  get heard(): Heard {
    const { usage, model, tier, answerId } = this.#end;
    const named = { model, tier: tier ?? undefined, answerId: answerId ?? undefined };
    return { usage: usage ?? {}, ...named, isComplete: this.isComplete, bytes: this.#bytes };
  }

  /** Takes the parts to their end. Behind a complete reply it waits a moment for each part that says more. */
  async read(parts: AsyncIterable<ReplyPart>): Promise<ProviderReply> {
    const reading = parts[Symbol.asyncIterator]();
    try {
      let goesOn = await this.#takeTo(reading, () => this.isComplete);
      while (goesOn) goesOn = await this.#inTime(this.#takeTo(reading, saysSomething));
    } finally {
      reading.return?.().catch(ignore);
    }
    return this.reply();
  }

  reply(): ProviderReply {
    if (this.isComplete && this.#end.reason !== 'blocked') this.#endText();
    const { model = this.request.model, refusal } = this.#end;
    const usage = completeUsage(this.#end.usage);
    const reason = this.#reason;
    const isUnknown = this.#end.reason === 'unknown';
    if (reason === undefined) throw unusableAnswer(isUnknown ? 'unknown_end' : 'unfinished', usage);
    if (reason === 'malformed') throw unusableAnswer('malformed_call', usage);
    if (reason === 'blocked' && refusal && this.tape.isEmpty) throw refusedAnswer(refusal, usage);
    return { ...this.tape.end(reason, usage), reason, model, ...givenFields({ refusal, usage }) };
  }

  /** A reply that is there is not thrown away, and paid for again, for a word that is missing or new. */
  get #reason(): FinishReason | 'malformed' | undefined {
    const { reason, isWhole } = this.#end;
    if (reason === 'broken') return undefined;
    if (reason === 'unknown') return this.tape.isEmpty ? undefined : 'length';
    return reason ?? (isWhole && !this.tape.isEmpty ? 'stop' : undefined);
  }

  /** Takes parts up to one that is enough; false if there is none. */
  async #takeTo(reading: AsyncIterator<ReplyPart>, isEnough: (part: ReplyPart) => boolean): Promise<boolean> {
    for (;;) {
      const { done, value } = await (this.isComplete ? reading.next().catch(asEnd) : reading.next());
      this.request.signal.throwIfAborted();
      if (done) return false;
      this.#take(value);
      if (this.#isStopped) return false;
      if (isEnough(value)) return true;
    }
  }

  #take(part: ReplyPart): void {
    const { reason, refusal, isWhole, model, tier, answerId, usage } = part;
    this.request.onLife?.();
    this.#bytes += bytesOf(part);
    const isFirst = !this.#hasBegun && isOfReply(part);
    this.#hasBegun ||= isFirst;
    if (isFirst) this.request.onBegin?.();
    const end = Object.assign(this.#end, givenFields({ reason, refusal, isWhole, model, tier, answerId }));
    if (usage) end.usage = laterCounts(end.usage, usage);
    if (end.reason !== 'blocked') this.#add(part);
  }

  #add({ thinking, opaque, held = 0, isNewText, text, call }: ReplyPart): void {
    for (const kept of [thinking, opaque?.data, text]) this.tape.keep(kept?.length ?? 0);
    this.tape.keep(held);
    if (thinking !== undefined || opaque || isNewText) this.#endText();
    if (thinking !== undefined) this.tape.addThinking(thinking);
    if (opaque) this.tape.addOpaque(opaque);
    if (isNewText) this.tape.beginText();
    if (text) this.#addText(text);
    if (!call || this.#isStopped) return;
    this.#endText();
    this.tape.addCall(call);
  }

  #addText(piece: string): void {
    const { text, isFound } = this.stop?.take(piece) ?? { text: piece, isFound: false };
    if (text) this.tape.addText(text);
    if (!isFound) return;
    this.#isStopped = true;
    Object.assign(this.#end, { reason: 'stop', isWhole: true } satisfies ReplyPart);
  }

  /** Adds what was kept back as the possible beginning of a text to stop at, before another part or the end. */
  #endText(): void {
    const rest = this.stop?.rest();
    if (rest) this.tape.addText(rest);
  }

  #inTime(taking: Promise<boolean>): Promise<boolean> {
    const bounded = (this.request.withTimeout ?? withTimeout)(maxWaitForUsageMs, taking, () => tooLate);
    return bounded.catch((error: unknown) => {
      if (error === tooLate) return false;
      throw error;
    });
  }
}

const asEnd = () => ({ done: true, value: undefined }) as const;

const saysSomething = ({ thinking, opaque, text, call }: ReplyPart): boolean =>
  Boolean(thinking || opaque || text || call);

const bytesOf = ({ thinking = '', text = '', call }: ReplyPart): number =>
  Buffer.byteLength(thinking) + Buffer.byteLength(text) + Buffer.byteLength(call?.arguments ?? '');

const isOfReply = (part: ReplyPart): boolean => part.thinking !== undefined || saysSomething(part);

function completeUsage(counted: ReplyPart['usage']): Usage | undefined {
  const { inputTokens, outputTokens, ...others } = counted ?? {};
  // No request has no tokens: some servers write zeros where they count nothing.
  if (!inputTokens || outputTokens === undefined) return undefined;
  return { inputTokens, outputTokens, ...givenFields(others) };
}
