import type { ProviderId } from '../../../shared/contracts/contract.js';
import { isBlank } from '../../../shared/conversation.js';
import { readJson } from '../../../shared/json/json.js';
import type { Usage } from '../../../shared/protocol/attempts.js';
import { type Mark, textOfTape } from '../../../shared/protocol/parts.js';
import { type Unusable, unusableAnswer } from '../errors/error-classification.js';
import type { FinishReason, OnDelta, ProviderReply, ProviderRequest } from '../provider.js';
import { toObjectText } from './exact-json.js';
import { type CallFacts, lengthOf, type OpaqueBlock, TapeMarks } from './tape-marks.js';

/** A piece of a call of a tool, in an answer or in one piece of a streamed answer. */
export interface CallPiece extends CallFacts {
  /** The pieces of one call have the same key, which no other call of the answer has. */
  key: string | number;
  /** A piece of its JSON text; may be empty. */
  arguments?: string | undefined;
  /** Whether the provider says that no piece follows. Without a word of it, a call ends with its JSON. */
  isEnded?: boolean | undefined;
}

/** A call as far as it has come. */
interface OpenCall extends CallPiece {
  arguments: string;
  /** The first character of its arguments that is not white space. */
  opening?: string | undefined;
  /** Whether the tape has its arguments as far as they came. */
  isBegun: boolean;
  /** Whether the tape has all of its arguments. */
  isOver?: boolean;
}

/** The part of a tape that a reply is written with. */
export type ReplyTape = Pick<
  Tape,
  'isEmpty' | 'keep' | 'addThinking' | 'addOpaque' | 'beginText' | 'addText' | 'addCall' | 'end'
>;

/**
 * A reply as it grows (docs/decisions/0044-parts-and-marks.md). Hands out each piece with the mark of the part that it
 * begins, and refuses what cannot be used.
 *
 * The tape is one line, and a provider may write several calls in turns: what begins before a call has ended waits for
 * its end.
 *
 * A blank is held back where no text has begun. If text follows, the blank belongs to it. If a call follows, or nothing
 * behind a call, it is dropped. If the whole reply is blank, the call fails, and then no reader has seen more than
 * thinking.
 *
 * Thinking and opaque blocks are kept as far as the request's `reasoning` says, and there is room.
 */
export class Tape {
  readonly #marks: TapeMarks;
  readonly #calls = new Map<CallPiece['key'], OpenCall>();
  #text = '';
  #held = '';
  /** The part that its next piece continues. */
  #open: 'text' | 'thinking' | undefined;
  /** Whether the tape has a text or a call. */
  #hasSaid = false;
  /** The call that the tape is in. */
  #call: OpenCall | undefined;
  /** The calls, and the steps that add other parts, that have begun behind it before its end, in their order. */
  #waiting: (OpenCall | (() => void))[] = [];
  #usage: Usage | undefined;
  #keptLength = 0;

  constructor(
    provider: ProviderId,
    private readonly request: ProviderRequest,
    private readonly onDelta: OnDelta,
  ) {
    this.#marks = new TapeMarks(provider, request);
  }

  /** Whether it has neither a text nor a call. */
  get isEmpty(): boolean {
    return !this.#hasSaid && this.#calls.size === 0;
  }

  /** An empty piece begins a thought. */
  addThinking(piece: string): void {
    if (this.request.reasoning !== 'shown' || this.#marks.areMany) return;
    if (!this.#endCall()) return void this.#wait(() => this.addThinking(piece));
    if (piece === '') this.#open = undefined;
    else this.#writePiece('thinking', piece);
  }

  addOpaque(block: OpaqueBlock): void {
    if (this.request.reasoning === undefined) return;
    if (!this.#endCall()) return void this.#wait(() => this.addOpaque(block));
    if (!this.#marks.keep(block)) return;
    this.#open = undefined;
    this.#write(block.data, this.#marks.ofOpaque(block, this.#text.length));
  }

  /** A text begins, perhaps behind another one: only a reply with marks has them apart. */
  beginText(): void {
    if (this.request.reasoning === undefined) return;
    if (!this.#endCall()) this.#wait(() => this.beginText());
    else if (this.#marks.list.length > 0 && !this.#marks.areMany) this.#open = undefined;
  }

  /** Counts characters that are kept, whether or not they are handed out. Throws for more than a reply may have. */
  keep(length: number): void {
    this.#keptLength += length;
    if (this.#keptLength > maxReplyLength) throw this.#unusable('oversized');
  }

  addText(piece: string): void {
    if (this.#open === 'text') return void this.#writePiece('text', piece);
    // Not cut out of the text: a piece that is keeps all of it in memory, as it was then.
    const text = this.#held + piece;
    this.#held = text;
    if (isBlank(piece) && this.#waiting.length === 0) return;
    this.#held = '';
    if (!this.#endCall()) return void this.#wait(() => this.addText(text));
    this.#hasSaid = true;
    this.#writePiece('text', text);
  }

  addCall(piece: CallPiece): void {
    const known = this.#calls.get(piece.key);
    // The end of something else: only a call has a name.
    if (piece.isEnded && !known && !piece.name) return;
    this.#held = '';
    const call = known ?? this.#beginCall(piece.key);
    const before = lengthOf(call);
    call.id ||= piece.id;
    call.name ||= piece.name;
    call.extra ??= piece.extra;
    call.preset ??= piece.preset;
    call.isEnded ||= piece.isEnded;
    this.keep(lengthOf(call) - before + (piece.arguments?.length ?? 0));
    if (piece.arguments) this.#addArguments(call, piece.arguments);
  }

  /** The whole reply, with what an end for this reason adds to it. */
  end(reason: FinishReason, usage: Usage | undefined): Pick<ProviderReply, 'text' | 'marks'> {
    this.#usage = usage;
    // What the token limit has cut stays as far as it came.
    if (reason !== 'blocked') this.#finishAll(reason === 'length');
    if (reason !== 'blocked' && !this.#hasSaid) this.#takeBlank(reason);
    if (reason === 'stop') this.#checkFormat();
    const { list: marks } = this.#marks;
    return { text: this.#text, ...(marks.length > 0 && { marks }) };
  }

  #beginCall(key: CallPiece['key']): OpenCall {
    if (this.#calls.size === maxCalls) throw this.#unusable('too_many_calls');
    const call: OpenCall = { key, arguments: '', isBegun: false };
    this.#calls.set(key, call);
    if (this.#endCall()) {
      this.#call = call;
      this.#open = undefined;
    } else this.#wait(call);
    return call;
  }

  #addArguments(call: OpenCall, piece: string): void {
    if (call.isOver && !isBlank(piece)) throw this.#unusable('interleaved_calls');
    call.arguments += piece;
    call.opening ||= piece.trimStart()[0];
    if (call !== this.#call) return;
    if (call.isBegun) this.#write(piece);
    // What does not begin as an object waits for its end, which tells what it is.
    else if (call.opening === '{') this.#begin(call, call.arguments);
  }

  #wait(part: OpenCall | (() => void)): void {
    if (this.#waiting.push(part) > maxWaiting) throw this.#unusable('interleaved_calls');
  }

  /** Ends the call that the tape is in, if it has all of its arguments. Whether the tape is free for another part. */
  #endCall(): boolean {
    const call = this.#call;
    if (!call) return true;
    if (this.#waiting.length > 0) return false;
    const isWhole = call.isEnded || (call.arguments !== '' && toObjectText(call.arguments) !== undefined);
    if (isWhole) this.#finish(call);
    return isWhole;
  }

  /** Ends the open call, and writes what waits behind it. A call that was cut before its first piece is left out. */
  #finishAll(isCut: boolean): void {
    const parts = this.#call ? [this.#call, ...this.#waiting] : [];
    this.#call = undefined;
    this.#waiting = [];
    const last = isCut ? parts.at(-1) : undefined;
    for (const part of parts) {
      if (typeof part === 'function') part();
      else if (part !== last || part.arguments || part.preset) this.#finish(part, isCut);
    }
  }

  #finish(call: OpenCall, isCut = false): void {
    this.#call = undefined;
    this.#open = undefined;
    call.isOver = true;
    const text = call.arguments || (call.preset ?? '');
    const json = toObjectText(text) ?? (isCut ? text : undefined);
    if (json === undefined) throw this.#unusable('malformed_arguments');
    if (!call.isBegun) this.#begin(call, json);
  }

  #begin(call: OpenCall, json: string): void {
    call.isBegun = true;
    const mark = this.#marks.ofCall(call, this.#text.length);
    if (typeof mark === 'string') throw this.#unusable(mark);
    this.#hasSaid = true;
    this.#write(json, mark);
  }

  #write(piece: string, mark?: Mark): void {
    if (mark) this.#marks.list.push(mark);
    this.#text += piece;
    this.onDelta(piece, mark);
  }

  /** Writes a piece of the open part, or the first of another one: a text needs no mark where the tape begins. */
  #writePiece(kind: 'text' | 'thinking', piece: string): void {
    const isMarked = this.#open !== kind && (kind === 'thinking' || this.#text !== '');
    this.#open = kind;
    this.#write(piece, isMarked ? { kind, at: this.#text.length } : undefined);
  }

  #takeBlank(reason: FinishReason): void {
    if (!this.request.blankAllowedFor?.includes(reason)) throw this.#unusable('blank');
    if (this.#held !== '') this.#writePiece('text', this.#held);
  }

  /** A text that the caller's own text to stop at has ended may be any part of JSON. */
  #checkFormat(): void {
    const { format, stop } = this.request.parameters ?? {};
    if (format === undefined || stop !== undefined || this.#calls.size > 0) return;
    const text = textOfTape({ text: this.#text, marks: this.#marks.list });
    if (readJson(text) === undefined) throw this.#unusable('malformed_json');
  }

  #unusable(what: Unusable) {
    return unusableAnswer(what, this.#usage);
  }
}

/** Characters that are kept of a reply with its thinking, far more than any model writes: a million tokens. */
export const maxReplyLength = 4_194_304;

/** OpenAI's limit of tools, and far more calls than a reply has. */
const maxCalls = 128;
/** The pieces that come before a call has ended, of a provider that writes several at once. */
const maxWaiting = 10_000;
