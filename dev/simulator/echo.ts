import type { ProviderId, Turn } from '../../shared/contract.js';

const maxCharsOfTurn = 80;
const maxCharsOfLastUserTurn = 500;
const maxTurns = 200;
const streamPieces = 8;
const maxPieceChars = 4096;

/** A reply that says that it is simulated, and shows the turns of the conversation, long ones shortened. */
export function echo(provider: ProviderId, turns: readonly Turn[]): string {
  const last = turns.findLastIndex((turn) => turn.role === 'user');
  const shown = turns.slice(-maxTurns);
  const hidden = turns.length - shown.length;
  const lines = shown.map(({ role, content }, index) => {
    const length = index + hidden === last ? maxCharsOfLastUserTurn : maxCharsOfTurn;
    return `[${role}] ${shorten(content, length)}`;
  });
  if (hidden > 0) lines.unshift(`(${hidden} earlier)`);
  const characters = turns.reduce((sum, turn) => sum + turn.content.length, 0);
  const read = `${count(turns.length, 'turn')}, ${count(characters, 'character')}`;
  return `Simulated ${provider} reply (no model was called). I read ${read}: ${lines.join(' | ')}`;
}

/** The text of the newest user turn; empty if there is none. */
export function lastUserText(turns: readonly Turn[]): string {
  return turns.findLast((turn) => turn.role === 'user')?.content ?? '';
}

/** Splits a text into the pieces of a stream, several unless it is tiny, without splitting a surrogate pair. */
export function splitText(text: string): string[] {
  const size = Math.min(maxPieceChars, Math.max(2, Math.ceil(text.length / streamPieces)));
  const pieces: string[] = [];
  for (let start = 0; start < text.length; ) {
    const end = wholeCharacters(text, start + size);
    pieces.push(text.slice(start, end));
    start = end;
  }
  return pieces;
}

/** The first half of a text, as if cut at the token limit. */
export function firstHalf(text: string): string {
  return firstCharacters(text, Math.ceil(text.length / 2));
}

/** So many characters of a text, or one more where a surrogate pair would be split. */
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
