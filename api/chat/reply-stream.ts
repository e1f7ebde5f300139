import type { Target } from '../../shared/contracts/contract.js';
import { Failure } from '../../shared/failures.js';
import { writerOf } from '../../shared/protocol/outcome.js';
import { type Delta, type Mark, sliceText } from '../../shared/protocol/parts.js';
import { invalid } from '../../shared/validation.js';

/** A place in the text of one call, its tape, as in the `id` of an event: `<call>.<length of the text before it>`. */
export interface TextPosition {
  readonly callId: string;
  /** The place in the reply, in UTF-16 units. */
  readonly offset: number;
}

/** A complete reply, and the model that wrote it. */
type WholeText = Parameters<typeof writerOf>[0] & {
  readonly text: string;
  readonly marks?: readonly Mark[] | undefined;
  readonly ignored?: readonly string[] | undefined;
  readonly changes?: readonly string[] | undefined;
  /** The id of the call; absent for a reply that was not streamed. */
  readonly callId?: string | undefined;
};

/** The origin of a reply. */
export interface ReplySource {
  /** The model that writes it, if the request names another one. */
  readonly writer?: Target | undefined;
  /** The request's hints that it was asked without, because it refuses them; absent means none. */
  readonly ignored?: readonly string[] | undefined;
  /** How the conversation was changed for its provider; absent means not at all. */
  readonly changes?: readonly string[] | undefined;
}

/** Where the pieces of a reply go. */
export interface DeltaSink {
  /** Called before the first piece. */
  begin(from?: ReplySource): void;
  /** A part begins, of which the next piece is a piece; called once for each whose beginning the reader lacks. */
  mark?(mark: Mark): void;
  /** Takes the next piece; `position` is its end. False means: wait for `drained` before the next one. */
  write(text: string, position: TextPosition): boolean;
  drained(): Promise<void>;
}

interface ReplyStreamOptions {
  sink: DeltaSink;
  /** Where the reader has got to before; absent means nowhere. */
  from?: TextPosition | undefined;
  /** Aborts with a `Failure` when the reader may not read on; absent means that this does not happen. */
  signal?: AbortSignal;
  /** Asks the worker to send the text from this offset on; absent where the reply is whole already. */
  requestResend?: (offset: number) => void;
  /** Whether the worker has to be asked for the beginning, because it sends the text elsewhere. */
  isJoined?: boolean;
  /** Called when the text cannot be continued. */
  onFailure?: (failure: Failure) => void;
}

/** How long a request for a resend may take before it counts as lost, in milliseconds. */
const resendTimeoutMs = 1000;
/** After this silence, in milliseconds, the worker is asked for its position: another may have begun anew. */
const silenceMs = 5000;
/**
 * After this long without an answer no worker has the text any more, in milliseconds; longer than an outage of the
 * store that a stream survives. Another worker would have reported that it begins anew, and there may be none.
 */
const abandonedMs = 30_000;
/** UTF-16 units that are asked for at once: a slow client would be sent a long text over and over. */
export const resendLength = 8192;
/** UTF-16 units of one event, where the whole text is there. */
const maxEventLength = 16_384;
/** The call of a reply that was not streamed. */
const unstreamedCall = '0';

/**
 * One reader's view of a reply: writes its text to the sink in order, every part once, from deltas that may be lost,
 * come twice or belong to another call, and in the end from the outcome. It stores no text: what is missing is asked
 * for again, be it that a message was lost, that the reader came later, or that it was too slow.
 */
export class ReplyStream {
  hasFailed = false;
  /** Whether the whole text was there, and what the reader lacked of it is written. */
  isFinished = false;
  readonly #options: ReplyStreamOptions;
  #callId: string | undefined;
  #source: ReplySource = {};
  #sent: number;
  #isPaused = false;
  #resendRequestedAt = Number.NEGATIVE_INFINITY;
  #isOver = false;
  /** The position at which the worker pauses until it is asked for more. */
  #askedUpTo = Number.POSITIVE_INFINITY;
  #asking: NodeJS.Timeout | undefined;
  #hasHeard = false;
  /** When the worker was last heard, or could first be, by `performance.now()`. */
  #heardAt = performance.now();

  constructor(options: ReplyStreamOptions) {
    this.#options = options;
    this.#callId = options.from?.callId;
    this.#sent = options.from?.offset ?? 0;
  }

  get hasBegun(): boolean {
    return this.#sent > (this.#options.from?.offset ?? 0);
  }

  /** Whether the reader has a part of the text, be it from an earlier request. */
  get hasText(): boolean {
    return this.#sent > 0;
  }

  /** A worker runs the job. One that does not know the reader is asked for the beginning of the text. */
  askFirst(): void {
    if (this.#options.isJoined && !this.#hasHeard) this.#requestResend();
  }

  receive({ callId, provider, model, ignored, changes, at, text, marks }: Delta): void {
    if (this.#isOver) return;
    this.#expectMore();
    const source = { writer: provider && { provider, model }, ignored, changes };
    if (!this.#adopt(callId, source)) this.#fail(lost('was restarted'));
    else if (this.#isPaused) return;
    else if (at > this.#sent) this.#requestResend();
    // The end of the text so far: its reader asked for more than there is. Later on it is only an old one that is late.
    else if (text === '' && at < this.#sent && !this.hasBegun) this.#fail(beyondText());
    else {
      this.#resendRequestedAt = Number.NEGATIVE_INFINITY;
      this.#write(text.slice(this.#sent - at), marks);
      // A character that would be cut in two stays behind.
      if (this.#sent >= this.#askedUpTo - 1) this.#requestResend();
    }
  }

  /** Writes the rest of the whole text until the sink has taken it. Throws the reason with which the signal aborts. */
  async finish({ text, marks, callId = unstreamedCall, ...reply }: WholeText): Promise<void> {
    this.close();
    this.isFinished = true;
    const { signal, sink } = this.#options;
    const { ignored, changes } = reply;
    if (!this.#adopt(callId, { writer: writerOf(reply), ignored, changes })) {
      // An event rather than a response of its own: the reader has a part of a text, maybe from another request.
      sink.begin();
      throw lost('was restarted');
    }
    if (this.#sent > text.length) throw beyondText();
    for (;;) {
      if (signal?.reason instanceof Failure) throw signal.reason;
      if (this.#sent === text.length) return;
      const piece = sliceText(text, this.#sent, maxEventLength) || text.slice(this.#sent);
      if (!this.#take(piece, marks)) await sink.drained();
    }
  }

  /** Ends the stream: nothing is received after that. */
  close(): void {
    this.#isOver = true;
    clearInterval(this.#asking);
  }

  #expectMore(): void {
    this.#heardAt = performance.now();
    if (this.#hasHeard) return void this.#asking?.refresh();
    this.#hasHeard = true;
    clearInterval(this.#asking);
    this.#asking = setInterval(() => this.#requestResend(), silenceMs);
  }

  /** Whether the reader can read this call's text: nothing of another's was shown. */
  #adopt(callId: string, source: ReplySource): boolean {
    if (this.#callId !== callId && this.#sent > 0) return false;
    this.#callId = callId;
    this.#source = source;
    return true;
  }

  #write(text: string, marks: readonly Mark[] | undefined): void {
    if (text === '' || this.#take(text, marks)) return;
    this.#isPaused = true;
    this.#options.sink.drained().then(
      () => {
        this.#isPaused = false;
        this.#heardAt = performance.now();
        this.#resendRequestedAt = Number.NEGATIVE_INFINITY;
        this.#requestResend();
      },
      () => undefined,
    );
  }

  /**
   * Writes up to each mark in the text, hands the mark to the sink, and goes on. False once the sink takes no more. A
   * mark goes right before the text that follows it, so an offset tells which marks its reader has.
   */
  #take(text: string, marks: readonly Mark[] = []): boolean {
    const { sink } = this.#options;
    sink.begin(this.#source);
    let rest = text;
    while (rest !== '') {
      const mark = marks.find(({ at }) => at === this.#sent);
      const next = marks.find(({ at }) => at > this.#sent);
      if (mark) sink.mark?.(mark);
      const piece = next ? rest.slice(0, next.at - this.#sent) : rest;
      rest = rest.slice(piece.length);
      this.#sent += piece.length;
      if (!sink.write(piece, { callId: this.#callId ?? unstreamedCall, offset: this.#sent })) return false;
    }
    return true;
  }

  #requestResend(): void {
    if (this.#isOver || this.#isPaused) return;
    const now = performance.now();
    // A chat without a delta may still wait in the queue.
    if (this.#sent > 0 && now - this.#heardAt >= abandonedMs) this.#fail(lost('broke off'));
    else if (now - this.#resendRequestedAt >= resendTimeoutMs) {
      this.#resendRequestedAt = now;
      this.#askedUpTo = this.#sent + resendLength;
      this.#options.requestResend?.(this.#sent);
    }
  }

  #fail(failure: Failure): void {
    this.close();
    this.hasFailed = true;
    if (failure.code !== 'invalid_request') this.#options.sink.begin();
    this.#options.onFailure?.(failure);
  }
}

const lost = (what: 'was restarted' | 'broke off'): Failure =>
  new Failure('internal', { detail: `The reply ${what}; request it again from its start.`, retryable: true });

const beyondText = (): Failure => invalid('Last-Event-ID', 'is beyond the end of the reply');
