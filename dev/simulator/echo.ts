import type { ProviderId } from '../../shared/contracts/contract.js';
import { type Part, partsOf, type Turn, textOf, textOfResult } from '../../shared/conversation.js';

const maxCharsOfTurn = 80;
const maxCharsOfLastUserTurn = 500;
const maxTurns = 200;
const streamPieces = 8;
const maxPieceChars = 4096;
const charactersPerToken = 4;

/** A reply that says that it is simulated, and shows the turns of the conversation, long ones shortened. */
export function echo(provider: ProviderId, turns: readonly Turn[]): string {
  const last = turns.findLastIndex((turn) => turn.role === 'user');
  const shown = turns.slice(-maxTurns);
  const hidden = turns.length - shown.length;
  const lines = shown.map((turn, index) => {
    const length = index + hidden === last ? maxCharsOfLastUserTurn : maxCharsOfTurn;
    return `[${turn.role}] ${shorten(partsOf(turn).map(describe).join(' '), length)}`;
  });
  if (hidden > 0) lines.unshift(`(${hidden} earlier)`);
  const read = `${count(turns.length, 'turn')}, ${count(sizeOf(turns), 'character')}`;
  return `Simulated ${provider} reply (no model was called). I read ${read}: ${lines.join(' | ')}`;
}

/** The text of the newest user turn; empty if there is none. */
export function lastUserText(turns: readonly Turn[]): string {
  return textOf(turns.findLast((turn) => turn.role === 'user') ?? { content: '' });
}

/** The size of a conversation: in characters, as far as it would be shown, and in bytes of images. */
export const sizeOf = (turns: readonly Turn[]): number =>
  turns
    .flatMap(partsOf)
    .reduce((sum, part) => sum + ('bytes' in part ? part.bytes : describe(part).length), 0);

/** An estimate, the same for every provider. */
export const countTokens = (characters: number): number => Math.ceil(characters / charactersPerToken);

function describe(part: Part): string {
  switch (part.type) {
    case 'text':
      return part.text;
    case 'image':
      return '(image)';
    case 'tool_call':
      return `(call ${part.id} of ${part.name}: ${part.arguments})`;
    case 'tool_result':
      return `(${part.isError === true ? 'error' : 'result'} of ${part.callId}: ${textOfResult(part)})`;
    case 'opaque':
      return '(signature)';
  }
}

/** Splits a text into the pieces of a stream, several unless it is tiny, without splitting a surrogate pair. */
export function splitText(text: string): string[] {
  const size = Math.min(maxPieceChars, Math.max(2, Math.ceil(text.length / streamPieces)));
  return splitInto(text, Math.ceil(text.length / size));
}

/** Splits a text into so many pieces of about one size, fewer if it is shorter. */
export function splitInto(text: string, amount: number): string[] {
  const ends = Array.from({ length: amount }, (_, index) =>
    wholeCharacters(text, Math.floor(((index + 1) * text.length) / amount)),
  );
  return ends.map((end, index) => text.slice(ends[index - 1] ?? 0, end)).filter((piece) => piece !== '');
}

/** The beginning of a text that has so many tokens; undefined if that is all of it. */
export const headOf = (text: string, tokens: number): string | undefined =>
  countTokens(text.length) > tokens ? firstCharacters(text, tokens * charactersPerToken) : undefined;

/** The first characters of a text, or one more where a surrogate pair would be split. */
export function firstCharacters(text: string, amount: number): string {
  return text.slice(0, wholeCharacters(text, amount));
}

function shorten(text: string, length: number): string {
  return text.length <= length ? text : `${firstCharacters(text, length)}…`;
}

/** The index, or the next one if it would split a surrogate pair. */
function wholeCharacters(text: string, index: number): number {
  const isLowHalf = (text.charCodeAt(index) & 0xfc00) === 0xdc00;
  return isLowHalf ? index + 1 : index;
}

function count(amount: number, noun: string): string {
  return `${amount} ${noun}${amount === 1 ? '' : 's'}`;
}
