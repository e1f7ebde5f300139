import type { Message, Turn } from './contract.js';

/** The turns of a conversation: a missing role is `user`, blank messages are dropped, texts stay byte for byte. */
export function toTurns(messages: readonly Message[]): Turn[] {
  return messages
    .map(({ role = 'user', content = '' }) => ({ role, content }))
    .filter((turn) => !isBlank(turn.content));
}

/** The size of a conversation's texts, in bytes of UTF-8. */
export const bytesOf = (turns: readonly Turn[]): number =>
  turns.reduce((total, { content }) => total + Buffer.byteLength(content), 0);

// Wider than /\S/: providers refuse texts without a visible character and disagree on white space (Python's
// `isspace` includes U+001C to U+001F, JavaScript's `\s` does not), so every invisible character counts as blank.
const visibleCharacter = /[^\p{White_Space}\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]/u;

/** Whether a text has only white space, control and invisible format characters. */
export function isBlank(text: string): boolean {
  return !visibleCharacter.test(text);
}
