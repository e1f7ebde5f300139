import type { ProviderId } from '../../../shared/contracts/contract.js';
import type { Mark } from '../../../shared/protocol/parts.js';
import { unusableAnswer } from '../errors/error-classification.js';
import type { OnDelta, ProviderReply, ProviderRequest } from '../provider.js';
import { type CallPiece, maxReplyLength, type ReplyTape } from './tape.js';
import type { OpaqueBlock } from './tape-marks.js';
import { TapeMarks } from './tape-marks.js';

/**
 * The tape of a reply whose client speaks the provider's own API: it takes all as it comes, also blanks, tools that
 * were not offered and arguments that are no JSON, and refuses nothing but what is too long. Each part has a mark, also
 * a text behind another one. Blocks come one after the other, so nothing waits.
 */
export class OpenTape implements ReplyTape {
  readonly #marks: TapeMarks;
  #text = '';
  #open: 'text' | 'thinking' | undefined;
  #call: CallPiece['key'] | undefined;
  #hasSaid = false;
  #keptLength = 0;

  constructor(
    provider: ProviderId,
    private readonly request: ProviderRequest,
    private readonly onDelta: OnDelta,
  ) {
    this.#marks = new TapeMarks(provider, request);
  }

  get isEmpty(): boolean {
    return !this.#hasSaid;
  }

  keep(length: number): void {
    this.#keptLength += length;
    if (this.#keptLength > maxReplyLength) throw unusableAnswer('oversized');
  }

  addThinking(piece: string): void {
    if (this.request.reasoning !== 'shown' || this.#marks.areMany) return;
    if (piece === '') this.#open = undefined;
    else this.#writePiece('thinking', piece);
  }

  addOpaque(block: OpaqueBlock): void {
    if (!this.#marks.keep(block)) return;
    this.#open = undefined;
    this.#write(block.data, this.#marks.ofOpaque(block, this.#text.length));
  }

  beginText(): void {
    this.#open = undefined;
  }

  addText(piece: string): void {
    this.#hasSaid = true;
    this.#writePiece('text', piece);
  }

  /** A call whose arguments are empty has those of its beginning. */
  addCall({ key, id = '', name = '', extra, preset, arguments: piece = '', isEnded }: CallPiece): void {
    if (name) {
      this.#call = key;
      this.#hasSaid = true;
      this.#waiting = { mark: { kind: 'call', at: 0, id, name, ...(extra && { extra }) }, preset };
    }
    if (this.#call !== key) return;
    this.keep(piece.length);
    if (piece !== '') this.#writeArguments(piece);
    if (!isEnded) return;
    if (this.#waiting) this.#writeArguments(this.#waiting.preset ?? '{}');
    this.#call = undefined;
  }

  #waiting: { mark: Extract<Mark, { kind: 'call' }>; preset: string | undefined } | undefined;

  #writeArguments(piece: string): void {
    const mark = this.#waiting && { ...this.#waiting.mark, at: this.#text.length };
    this.#waiting = undefined;
    this.#open = undefined;
    this.#write(piece, mark);
  }

  end(): Pick<ProviderReply, 'text' | 'marks'> {
    const { list: marks } = this.#marks;
    return { text: this.#text, ...(marks.length > 0 && { marks }) };
  }

  #writePiece(kind: 'text' | 'thinking', piece: string): void {
    const mark = this.#open === kind ? undefined : { kind, at: this.#text.length };
    this.#open = kind;
    this.#write(piece, mark);
  }

  #write(piece: string, mark?: Mark): void {
    if (piece === '') return;
    if (mark) this.#marks.list.push(mark);
    this.#text += piece;
    this.onDelta(piece, mark);
  }
}
