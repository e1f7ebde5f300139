import type { Message, ProviderId, Role } from './contract.js';

/** One message after validation: a known role, and a text or parts of which one at least says something. */
export interface Turn {
  role: Role;
  content: string | readonly Part[];
}

/** A piece of a message. Results come in turns of the user, calls and opaque parts in those of the assistant. */
export type Part = TextPart | ImagePart | ToolCallPart | ToolResultPart | OpaquePart;

export interface TextPart {
  type: 'text';
  text: string;
}

/** An image that a provider fetches itself, or one whose bytes lie in the queue's store. */
export type ImagePart = { type: 'image'; url: string } | StoredImage;

export interface StoredImage {
  type: 'image';
  mediaType: ImageType;
  /** The digest of its bytes, in hexadecimal. */
  sha256: string;
  /** How many bytes it has. */
  bytes: number;
  /** Its bytes in base64; there only while a call is made. */
  data?: string | undefined;
}

export type ImageType = 'image/png' | 'image/jpeg' | 'image/webp' | 'image/gif';

/** A call that the model made of one of the caller's tools. */
export interface ToolCallPart {
  type: 'tool_call';
  /** As the caller names it: any text. */
  id: string;
  name: string;
  /** JSON text of an object, as the model wrote it. */
  arguments: string;
}

/** The caller's answer to a call of this conversation. */
export interface ToolResultPart {
  type: 'tool_result';
  /** The id of the call. */
  callId: string;
  content: string;
  isError?: boolean | undefined;
}

/** Data for a model of this provider alone, such as a signature; it belongs to the call that follows it. */
export interface OpaquePart {
  type: 'opaque';
  provider: ProviderId;
  data: string;
}

/** The turns of a conversation: a missing role is `user`, blank messages are dropped, texts stay byte for byte. */
export function toTurns(messages: readonly Message[]): Turn[] {
  return messages
    .map(({ role = 'user', content = '' }) => ({ role, content }))
    .filter((turn) => !isBlank(turn.content));
}

/** The parts of a turn; a text is one part. */
export const partsOf = ({ content }: Pick<Turn, 'content'>): readonly Part[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : content;

/** The texts of a turn, joined. */
export const textOf = ({ content }: Pick<Turn, 'content'>): string =>
  typeof content === 'string'
    ? content
    : content.map((part) => (part.type === 'text' ? part.text : '')).join('');

/** The size of a conversation in bytes: its texts in UTF-8, and its images. */
export const bytesOf = (turns: readonly Turn[]): number =>
  turns.reduce(
    (total, { content }) =>
      typeof content === 'string'
        ? total + Buffer.byteLength(content)
        : content.reduce((sum, part) => sum + bytesOfPart(part), total),
    0,
  );

function bytesOfPart(part: Part): number {
  switch (part.type) {
    case 'text':
      return Buffer.byteLength(part.text);
    case 'image':
      return 'url' in part ? part.url.length : part.bytes;
    case 'tool_call':
      return Buffer.byteLength(part.arguments);
    case 'tool_result':
      return Buffer.byteLength(part.content);
    case 'opaque':
      return Buffer.byteLength(part.data);
  }
}

// Wider than /\S/: providers refuse texts without a visible character and disagree on white space (Python's
// `isspace` includes U+001C to U+001F, JavaScript's `\s` does not), so every invisible character counts as blank.
const visibleCharacter = /[^\p{White_Space}\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]/u;

/** Whether a text has only white space, control and invisible format characters. */
export function isBlank(text: string): boolean {
  return !visibleCharacter.test(text);
}
