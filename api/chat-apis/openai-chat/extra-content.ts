import type { ExtraContent } from '../../../shared/contracts/completion-contract.js';
import { type ProviderId, providerIds } from '../../../shared/contracts/contract.js';
import { isBlank, type OpaquePart, type Part } from '../../../shared/conversation.js';
import { isObject, readJson, readObject } from '../../../shared/json/json.js';
import { providerModels } from '../../../shared/models/provider-models.js';
import type { CallMark, OpaquePiece, ReplyPiece } from '../../../shared/protocol/parts.js';
import type { ToolCallBody } from './message-body.js';

/**
 * The blocks for the model alone, on their way to a client and back. Clients keep them at calls alone, as a call's
 * `extra_content`: the JSON array of the blocks since the call before. In it `{"type":"text","length":n}` stands in the
 * place of the next n UTF-16 units of the message's text. Text that no array names stands before the first call.
 */

/** The length of a text among blocks. */
type TextPlace = { readonly kind: 'text'; length: number };

/** Collects the parts of a reply up to its next call. */
export class PartsBeforeCall {
  #parts: (OpaquePiece | TextPlace)[] = [];
  #isFirst = true;

  /** Adds a whole part. Thinking in words is for readers, and never sent back. */
  add(piece: Exclude<ReplyPiece, CallMark>): void {
    if (piece.kind === 'text') this.#parts.push({ kind: 'text', length: piece.text.length });
    else if (piece.kind === 'opaque') this.#parts.push(piece);
  }

  /** Adds a piece of the last text, or of the first. */
  addText({ length }: string): void {
    const last = this.#parts.at(-1);
    if (last?.kind === 'text') last.length += length;
    else this.#parts.push({ kind: 'text', length });
  }

  /** The `extra_content` of the next call. */
  take(): ExtraContent | undefined {
    const parts = this.#parts;
    const end = this.#isFirst ? parts.findLastIndex(({ kind }) => kind === 'opaque') + 1 : parts.length;
    this.#parts = [];
    this.#isFirst = false;
    const block = parts.find((part) => part.kind === 'opaque');
    return block && toExtraContent(block, parts.slice(0, end));
  }
}

/** The parts as they travel with the call behind them; undefined where nothing is to be kept. */
function toExtraContent(
  { provider, model }: OpaquePiece,
  parts: readonly (OpaquePiece | TextPlace)[],
): ExtraContent | undefined {
  const { path, bareField } = providerModels[provider].signatures;
  const blocks = parts.map((part) =>
    part.kind === 'opaque' ? part.data : JSON.stringify({ type: 'text', length: part.length }),
  );
  const data = bareField === undefined ? `[${blocks.join(',')}]` : signatureIn(blocks, bareField);
  const [name, field] = path;
  return data === undefined ? undefined : { [name]: { [field]: data, model } };
}

function signatureIn(blocks: readonly string[], field: string): string | undefined {
  const signature = blocks.map(readObject).findLast((block) => block?.of === 'call')?.[field];
  return typeof signature === 'string' ? signature : undefined;
}

/** The blocks before a call, and in their places the lengths of texts. */
type Kept = (OpaquePart | number)[];

/**
 * The parts of a message before each of its calls. An array that we have not written leaves out the blocks of the
 * whole message: models refuse a reply with a gap. `check` throws for JSON text that is too large to be parsed.
 */
export function partsBeforeCalls(
  text: string,
  calls: readonly ToolCallBody[],
  check: (json: string, place: number) => void,
): Part[][] {
  const read = calls.map(({ extra_content: extra }, place) => readExtra(extra, (json) => check(json, place)));
  const isOurs = !read.includes(undefined);
  const kept = read.map((each): Kept => (isOurs && each ? each : []));
  const named = kept.flat().reduce<number>((sum, part) => sum + (typeof part === 'number' ? part : 0), 0);
  const [first = []] = kept;
  const atCall = first.findIndex(isAtCall);
  first.splice(atCall < 0 ? first.length : atCall, 0, Math.max(0, text.length - named));
  let at = 0;
  const takeText = (length: number): Part[] => {
    const piece = text.slice(at, at + length);
    at += piece.length;
    return isBlank(piece) ? [] : [{ type: 'text', text: piece }];
  };
  return kept.map((parts) => parts.flatMap((part) => (typeof part === 'number' ? takeText(part) : [part])));
}

/** Whether a block has no place in the text. */
const isAtCall = (part: OpaquePart | number): boolean =>
  typeof part !== 'number' && providerModels[part.provider].signatures.bareField !== undefined;

type Check = (json: string) => void;

/** Undefined for an array that we have not written. */
function readExtra(extra: ToolCallBody['extra_content'], check: Check): Kept | undefined {
  const read = providerIds.map((provider) => readField(provider, extra, check));
  return read.includes(undefined) ? undefined : read.flatMap((each) => each ?? []);
}

/** Clients that know Google's own field, which has no model, give that alone back. */
function readField(
  provider: ProviderId,
  extra: ToolCallBody['extra_content'],
  check: Check,
): Kept | undefined {
  const { path, bareField } = providerModels[provider].signatures;
  const [name, field] = path;
  const { model, [field]: data }: Record<string, string | null | undefined> = extra?.[name] ?? {};
  if (!data) return [];
  const source = { type: 'opaque', provider, ...(model && { model }) } as const;
  if (bareField) return [{ ...source, data: JSON.stringify({ [bareField]: data, of: 'call' }) }];
  check(data);
  return model ? readArray(data, source) : [];
}

function readArray(json: string, source: Omit<OpaquePart, 'data'>): Kept | undefined {
  const blocks = readJson(json);
  if (!Array.isArray(blocks)) return undefined;
  const parts = blocks.map((block: unknown) => {
    if (!isObject(block)) return undefined;
    if (block.type === 'text') return isLength(block.length) ? block.length : undefined;
    // OpenAI's word about the text behind it.
    const role = 'phase' in block ? ({ role: 'start' } as const) : {};
    return { ...source, data: JSON.stringify(block), ...role };
  });
  return parts.every((part) => part !== undefined) ? parts : undefined;
}

const isLength = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0;
