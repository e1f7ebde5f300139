import type { ProviderId, Turn } from '../../shared/contract.js';

const shownOfATurn = 80;
const shownOfTheLastUserTurn = 500;
const shownTurns = 200;
const piecesOfAStream = 8;
const maxPiece = 4096;

/** A reply that says it is simulated and shows every turn it read, long ones shortened. */
export function echo(provider: ProviderId, turns: readonly Turn[]): string {
  const last = turns.findLastIndex((turn) => turn.role === 'user');
  const shown = turns.slice(-shownTurns);
  const hidden = turns.length - shown.length;
  const lines = shown.map(({ role, content }, index) => {
    const length = index + hidden === last ? shownOfTheLastUserTurn : shownOfATurn;
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

/** Splits a text into the pieces a stream sends it in, several unless it is tiny, without cutting a character in two. */
export function splitText(text: string): string[] {
  const size = Math.min(maxPiece, Math.max(2, Math.ceil(text.length / piecesOfAStream)));
  const pieces: string[] = [];
  for (let start = 0; start < text.length; ) {
    const end = wholeCharacters(text, start + size);
    pieces.push(text.slice(start, end));
    start = end;
  }
  return pieces;
}

/** The first half of a text, as if its token limit had been reached there. */
export function firstHalf(text: string): string {
  return text.slice(0, wholeCharacters(text, Math.ceil(text.length / 2)));
}

function shorten(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, wholeCharacters(text, length))}…`;
}

/** The index itself, or the one after it where it would fall between the two halves of a surrogate pair. */
function wholeCharacters(text: string, index: number): number {
  const isLowHalf = (text.charCodeAt(index) & 0xfc00) === 0xdc00;
  return isLowHalf ? index + 1 : index;
}

function count(amount: number, noun: string): string {
  return `${amount} ${noun}${amount === 1 ? '' : 's'}`;
}
