import { randomBytes } from 'node:crypto';
import { isBlank } from '../../shared/conversation.js';
import { readJson } from '../../shared/json.js';
import type { Usage } from '../../shared/protocol/attempts.js';
import { type Mark, maxSignatureLength } from '../../shared/protocol/parts.js';
import { type Unusable, unusableAnswer } from './error-classification.js';
import { toObjectText } from './exact-json.js';
import { callsIn } from './message-shaping.js';
import type { FinishReason, OnDelta, ProviderReply, ProviderRequest } from './provider.js';

/** A piece of a call of a tool, in an answer or in one piece of a streamed answer. */
export interface CallPiece {
  /** The pieces of one call have the same key, which no other call of the answer has. */
  key: string | number;
  /** These three come with the first piece of the arguments at the latest. */
  id?: string | undefined;
  name?: string | undefined;
  /** The data of an opaque part that belongs before the call. */
  signature?: string | undefined;
  /** Its other fields: JSON text of an object. */
  extra?: string | undefined;
  /** A piece of its JSON text; may be empty. */
  arguments?: string | undefined;
  /** The arguments of a call of which no piece comes. */
  preset?: string | undefined;
  /** Whether the provider says that no piece follows. Without a word of it, a call ends with its JSON. */
  isEnded?: boolean | undefined;
}

/** A call as far as it has come. */
interface OpenCall extends CallPiece {
  arguments: string;
  /** The first character of them that is not white space. */
  opening?: string | undefined;
  /** Whether the tape has them as far as they came. */
  isBegun: boolean;
  /** Whether the tape has all of them. */
  isOver?: boolean;
}

/**
 * A reply as it grows (docs/decisions/0044-parts-and-marks.md). Hands out each piece with the mark of the part that it
 * begins, and refuses what cannot be used.
 *
 * The tape is one line, and a provider may write several calls in turns: what begins before a call has ended waits for
 * its end.
 *
 * A blank is held back where no text has begun. If text follows, the blank belongs to it. If a call follows, or nothing
 * behind a call, it is dropped. If the whole reply is blank, the call fails, and then no reader has seen a part.
 */
export class Tape {
  readonly #request: ProviderRequest;
  readonly #onDelta: OnDelta;
  readonly #offered: ReadonlySet<string>;
  readonly #marks: Mark[] = [];
  readonly #calls = new Map<CallPiece['key'], OpenCall>();
  /** From the first call on, the ids of the conversation's: a provider may begin anew with its own in each reply. */
  #ids: Set<string> | undefined;
  #text = '';
  #held = '';
  #isInText = false;
  /** The call that the tape is in. */
  #call: OpenCall | undefined;
  /** The texts and calls that have begun behind it before its end, in their order. */
  #waiting: (string | OpenCall)[] = [];
  #usage: Usage | undefined;
  #keptLength = 0;

  constructor(request: ProviderRequest, onDelta: OnDelta) {
    const { tools = [], toolChoice } = request.parameters ?? {};
    this.#request = request;
    this.#onDelta = onDelta;
    this.#offered = new Set(toolChoice === 'none' ? [] : tools.map(({ name }) => name));
  }

  get isEmpty(): boolean {
    return this.#text === '' && this.#calls.size === 0;
  }

  /** Counts characters that are kept, whether or not they are handed out. Throws for more than a reply may have. */
  keep(length: number): void {
    this.#keptLength += length;
    if (this.#keptLength > maxReplyLength) throw this.#unusable('oversized');
  }

  addText(piece: string): void {
    if (this.#isInText) return void this.#write(piece);
    // Not cut out of the text: a piece that is keeps all of it in memory, as it was then.
    const text = this.#held + piece;
    this.#held = text;
    if (isBlank(piece) && this.#waiting.length === 0) return;
    this.#held = '';
    if (!this.#endCall()) return void this.#waiting.push(text);
    this.#isInText = true;
    this.#write(text, this.#text === '' ? undefined : { kind: 'text', at: this.#text.length });
  }

  addCall(piece: CallPiece): void {
    const known = this.#calls.get(piece.key);
    // The end of something else.
    if (piece.isEnded && !known) return;
    this.#held = '';
    const call = known ?? this.#beginCall(piece.key);
    const before = lengthOf(call);
    call.id ||= piece.id;
    call.name ||= piece.name;
    call.signature ??= piece.signature;
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
    if (reason !== 'blocked' && this.#text === '') this.#takeBlank(reason);
    if (reason === 'stop') this.#checkFormat();
    return { text: this.#text, ...(this.#marks.length > 0 && { marks: this.#marks }) };
  }

  #beginCall(key: CallPiece['key']): OpenCall {
    if (this.#calls.size === maxCalls) throw this.#unusable('too_many_calls');
    const call: OpenCall = { key, arguments: '', isBegun: false };
    this.#calls.set(key, call);
    if (this.#endCall()) {
      this.#call = call;
      this.#isInText = false;
    } else this.#waiting.push(call);
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
      if (typeof part === 'string') this.addText(part);
      else if (part !== last || part.arguments || part.preset) this.#finish(part, isCut);
    }
  }

  #finish(call: OpenCall, isCut = false): void {
    this.#call = undefined;
    this.#isInText = false;
    call.isOver = true;
    const said = call.arguments || (call.preset ?? '');
    const json = toObjectText(said) ?? (isCut ? said : undefined);
    if (json === undefined) throw this.#unusable('malformed_arguments');
    if (!call.isBegun) this.#begin(call, json);
  }

  #begin(call: OpenCall, json: string): void {
    call.isBegun = true;
    this.#write(json, this.#markOf(call));
  }

  #markOf({ id, name, signature }: CallPiece): Mark {
    if (!name) throw this.#unusable('nameless_call');
    if (!this.#offered.has(name)) throw this.#unusable('unknown_tool');
    this.#ids ??= new Set(callsIn(this.#request.turns).map((call) => call.id));
    const ownId = id && !this.#ids.has(id) ? id : newCallId();
    this.#ids.add(ownId);
    // As it travels: as JSON text.
    const isSigned = signature !== undefined && JSON.stringify(signature).length <= maxSignatureLength;
    return { kind: 'call', at: this.#text.length, id: ownId, name, ...(isSigned && { signature }) };
  }

  #write(piece: string, mark?: Mark): void {
    if (mark) this.#marks.push(mark);
    this.#text += piece;
    this.#onDelta(piece, mark);
  }

  #takeBlank(reason: FinishReason): void {
    if (!this.#request.mayBeBlankAt?.includes(reason)) throw this.#unusable('blank');
    if (this.#held !== '') this.#write(this.#held);
  }

  /** A text that the caller's own text to stop at has ended may be any part of JSON. */
  #checkFormat(): void {
    const { format, stop } = this.#request.parameters ?? {};
    if (format === undefined || stop !== undefined || this.#calls.size > 0) return;
    if (readJson(this.#text) === undefined) throw this.#unusable('malformed_json');
  }

  #unusable(what: Unusable) {
    return unusableAnswer(what, this.#usage);
  }
}

/** Characters that are kept of a reply with its thinking, far more than any model writes: a million tokens. */
const maxReplyLength = 4_194_304;

/** Of all but its arguments, which come in pieces. */
const lengthOf = ({ id = '', name = '', signature = '', extra = '', preset = '' }: CallPiece): number =>
  id.length + name.length + signature.length + extra.length + preset.length;

/** OpenAI's limit of tools, and far more calls than a reply has. */
const maxCalls = 128;

/** An id as long as OpenAI's own. */
const newCallId = (): string => `call_${randomBytes(18).toString('base64url')}`;
