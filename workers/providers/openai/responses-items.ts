import { z } from 'zod';
import { givenFields, readJson } from '../../../shared/json/json.js';
import { unusableAnswer } from '../errors/error-classification.js';
import type { ProviderRequest } from '../provider.js';
import { toJsonText } from '../reply/exact-json.js';
import type { ReplyPart } from '../reply/provider-call.js';

export const betweenTexts = '\n\n';

const text = z.string().nullish();
export const item = z.object({
  type: z.string(),
  status: text,
  /** The phase of a message. */
  phase: text,
  content: z.array(z.object({ type: z.string(), text, refusal: text })).nullish(),
  /** The summary of reasoning. */
  summary: z.array(z.object({ type: z.string(), text: z.string() })).nullish(),
  encrypted_content: text,
  /** The id of a call. */
  call_id: text,
  name: text,
  arguments: z.unknown().optional(),
});
export type Item = z.infer<typeof item>;

/** A piece of an item, or all of one of its texts or of its arguments, by its place in the response. */
interface Piece {
  output_index: number;
  content_index: number;
  delta: string;
  text?: string | null | undefined;
  arguments?: unknown;
}

/** An item as far as it has come. */
interface OpenItem {
  key: number;
  item: Item;
  /** Its text, thinking or arguments, of which each content is here by its place. */
  text: string;
  contents: string[];
  isShown: boolean;
  isEnded: boolean;
}

/**
 * The items of a response, each read where it first stands whole: in its pieces, in the event that ends it, or in the
 * last event of the stream. An item that is said twice counts once: OpenAI's models sometimes write the answer as a
 * commentary, too (https://github.com/langchain4j/langchain4j/issues/6399). So a piece waits for as long as it may
 * repeat another item. Some models give arguments at their end alone (https://github.com/BerriAI/litellm/pull/27792).
 *
 * A blank line stands between messages. Beside a format only the final answer counts, and a message without a phase is
 * one, as for the SDK (https://github.com/openai/openai-python/pull/3861).
 */
export class ResponseItems {
  readonly #items: OpenItem[] = [];
  readonly #places = new Map<string, OpenItem>();

  constructor(private readonly request: Pick<ProviderRequest, 'parameters'>) {}

  /** An item begins: another one, if the last at this place has ended. */
  begin(item: Item, index: number): ReplyPart {
    const known = this.#places.get(`${item.type} ${index}`);
    const begun = known && !known.isEnded ? known : this.#open(item, index);
    return this.#add(begun, '');
  }

  addPiece(type: Item['type'], { output_index, content_index, delta }: Piece): ReplyPart {
    const open = this.#at(type, output_index);
    if (open.isEnded) return {};
    open.contents[content_index] = (open.contents[content_index] ?? '') + delta;
    return this.#add(open, delta);
  }

  addWhole(type: Item['type'], { output_index, content_index, ...piece }: Piece): ReplyPart {
    const open = this.#at(type, output_index);
    const whole = type === 'message' ? piece.text : toJsonText(piece.arguments);
    return open.isEnded ? {} : this.#add(open, this.#restOf(open, content_index, whole ?? ''));
  }

  /** All of an item. Only here reasoning is complete: before, its content may be a part (`ResponseReasoningItem`). */
  end(item: Item, index: number): ReplyPart[] {
    const open = this.#at(item.type, index);
    if (open.isEnded) return [];
    open.isEnded = true;
    open.item = { ...open.item, ...givenFields(item) };
    if (item.type === 'reasoning') return this.#endReasoning(open);
    const whole =
      item.type === 'message' ? (item.content ?? []).map(textOf).join('') : toJsonText(item.arguments);
    open.contents = [open.text];
    const rest = this.#restOf(open, 0, whole ?? '');
    const last = this.#add(open, rest, true);
    const isWhole = item.status !== 'incomplete';
    return [last.call ? { call: { ...last.call, isEnded: isWhole } } : last];
  }

  /** What has waited until the end of the response. */
  finish(): ReplyPart[] {
    return this.#items.filter(({ isShown }) => !isShown).map((open) => this.#add(open, '', true));
  }

  #at(type: Item['type'], index: number): OpenItem {
    return this.#places.get(`${type} ${index}`) ?? this.#open({ type }, index);
  }

  #open(item: Item, index: number): OpenItem {
    const key = this.#items.length;
    const open = { key, item, text: '', contents: [], isShown: false, isEnded: false };
    this.#items.push(open);
    this.#places.set(`${item.type} ${index}`, open);
    return open;
  }

  /** What all of a content has behind its pieces. Throws for a call whose pieces say something else. */
  #restOf({ item, contents, text }: OpenItem, place: number, whole: string): string {
    const given = contents[place] ?? '';
    // vLLM counts the content with each piece: https://github.com/vllm-project/vllm/pull/29947
    if (given === '' && text !== '' && text === whole) return '';
    const isMore = whole.startsWith(given);
    if (isMore) contents[place] = whole;
    else if (item.type === 'function_call' && whole !== '' && !saysTheSame(given, whole))
      throw unusableAnswer('malformed_arguments');
    return isMore ? whole.slice(given.length) : '';
  }

  #add(open: OpenItem, piece: string, isEnd = false): ReplyPart {
    open.text += piece;
    if (!open.isShown && this.#waits(open, isEnd)) return {};
    const shown = open.isShown ? piece : open.text;
    const isFirst = !open.isShown;
    open.isShown = true;
    const { key, item } = open;
    switch (item.type) {
      case 'reasoning':
        return isFirst || shown !== '' ? { thinking: shown } : {};
      case 'message':
        return { ...(isFirst && beginMessage(item)), text: (isFirst ? this.#spaceBefore(open) : '') + shown };
      case 'function_call': {
        const { call_id: id, name } = givenFields(item);
        return { call: { key, id, name, preset: toJsonText(item.arguments), arguments: shown } };
      }
      default:
        return {};
    }
  }

  /** Whether an item is not to be shown yet, or at all. */
  #waits(open: OpenItem, isEnd: boolean): boolean {
    const { type, phase, name, call_id: id } = open.item;
    const { format } = this.request.parameters ?? {};
    if (type === 'message' && format && phase && phase !== 'final_answer') return true;
    if (type === 'function_call' && !name && !isEnd) return true;
    return this.#items.some(({ key, item, text, isShown }) => {
      const isTwin = key !== open.key && isShown && item.type === type;
      if (!isTwin || type === 'reasoning' || (type === 'function_call' && (!id || item.call_id !== id)))
        return false;
      return isEnd ? text === open.text : text.startsWith(open.text);
    });
  }

  #spaceBefore({ key, text }: OpenItem): string {
    const isBehind = this.#items.some(
      (other) => other.key !== key && other.item.type === 'message' && other.isShown && other.text !== '',
    );
    return isBehind && text !== '' ? betweenTexts : '';
  }

  #endReasoning(open: OpenItem): ReplyPart[] {
    const { summary, content, encrypted_content } = open.item;
    const thought = [...(summary ?? []), ...(content ?? [])].map(textOf).join(betweenTexts);
    const thinking = this.#add(open, open.text === '' ? thought : '');
    if (!encrypted_content) return [thinking];
    const data = JSON.stringify({ summary: summary ?? [], encrypted_content });
    return [thinking, { opaque: { data } }];
  }
}

const beginMessage = ({ phase }: Item): ReplyPart => ({
  isNewText: true,
  ...(phase && { opaque: { role: 'start', data: JSON.stringify({ phase }) } }),
});

const textOf = ({ text }: { text?: string | null | undefined }): string => text ?? '';

/** Whether two texts are the same JSON. */
const saysTheSame = (one: string, other: string): boolean =>
  JSON.stringify(readJson(one)) === JSON.stringify(readJson(other));
