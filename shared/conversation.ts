import { z } from 'zod';
import { type Message, providerIds, type Role } from './contracts/contract.js';

/** How long what stands before a mark, with the marked part, is to be cached, where a provider takes marks. */
export const cacheTtl = z.enum(['5m', '1h']);
export type CacheTtl = z.output<typeof cacheTtl>;
const cache = cacheTtl.optional();

const textPart = z.object({ type: z.literal('text'), text: z.string(), cache });
export type TextPart = z.output<typeof textPart>;

/** An image that a provider fetches itself. */
const linkedImage = z.object({ type: z.literal('image'), url: z.string(), cache });

/** An image whose bytes lie in the queue's store. */
const storedImage = z.object({
  type: z.literal('image'),
  mediaType: z.enum(['image/png', 'image/jpeg', 'image/webp', 'image/gif']),
  /** The digest of its bytes, in hexadecimal. */
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  /** How many bytes it has. */
  bytes: z.int().positive(),
  cache,
});

export type ImageType = z.output<typeof storedImage>['mediaType'];

export interface StoredImage extends z.output<typeof storedImage> {
  /** Its bytes in base64; there only while a call is made. */
  data?: string | undefined;
}

export type ImagePart = z.output<typeof linkedImage> | StoredImage;

/** A call that the model made of one of the caller's tools. */
const toolCall = z.object({
  type: z.literal('tool_call'),
  /** Any text. */
  id: z.string(),
  name: z.string(),
  /** The JSON text of an object, as the model wrote it, unless it was cut. */
  arguments: z.string(),
  cache,
});
export type ToolCallPart = z.output<typeof toolCall>;

/** The caller's answer to a call of this conversation. */
const toolResult = z.object({
  type: z.literal('tool_result'),
  /** The id of the call. */
  callId: z.string(),
  /** A text, or texts and images. */
  content: z.union([z.string(), z.array(z.union([textPart, linkedImage, storedImage])).min(1)]),
  isError: z.boolean().optional(),
  cache,
});
export type ToolResultPart = z.output<typeof toolResult>;

/** The content of an opaque part: facts of the message (`start`, `end`), a `block`, or a `delta` of the open block. */
export const opaqueRoles = ['start', 'block', 'delta', 'end'] as const;
export type OpaqueRole = (typeof opaqueRoles)[number];

/** Data for a model of this provider alone, which get it back as it was, in its place. */
const opaque = z.object({
  type: z.literal('opaque'),
  provider: z.enum(providerIds),
  /** JSON text of an object. */
  data: z.string(),
  /** The model that wrote it; absent where its client has not kept the name. */
  model: z.string().optional(),
  /** Absent means a block. */
  role: z.enum(opaqueRoles).optional(),
});
export type OpaquePart = z.output<typeof opaque>;

/** A piece of a message. Results come in turns of the user, calls and opaque parts in those of the assistant. */
export type Part = TextPart | ImagePart | ToolCallPart | ToolResultPart | OpaquePart;

const part = z.union([textPart, toolCall, toolResult, opaque, linkedImage, storedImage]);

/** One message after validation: a known role, and a text or parts of which one at least says something. */
export interface Turn {
  role: Role;
  content: string | readonly Part[];
}

/** A turn as it crosses between processes. */
export const turnSchema: z.ZodType<Turn> = z.object({
  role: z.enum(['system', 'user', 'assistant']),
  content: z.union([z.string(), z.array(part).min(1)]),
});

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

/** The text of a result; its texts stand on lines of their own. */
export const textOfResult = ({ content }: Pick<ToolResultPart, 'content'>): string =>
  typeof content === 'string'
    ? content
    : content.flatMap((part) => (part.type === 'text' ? part.text : [])).join('\n');

/** The images of turns, also those in results. */
export const imagesOf = (turns: readonly Pick<Turn, 'content'>[]): ImagePart[] =>
  turns.flatMap(partsOf).flatMap((part) => {
    const parts = part.type === 'tool_result' && typeof part.content !== 'string' ? part.content : [part];
    return parts.filter((each) => each.type === 'image');
  });

// Wider than /\S/: providers refuse texts without a visible character and disagree on white space (Python's
// `isspace` includes U+001C to U+001F, JavaScript's `\s` does not), so every invisible character counts as blank.
const visibleCharacter = /[^\p{White_Space}\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]/u;

/** Remembers the kind of each code point: the expression alone takes a quarter of a second for 32 MB of blanks. */
const kinds = new Uint8Array(0x110000);
const [visible, invisible] = [1, 2];

/** Whether a text has only white space, control and invisible format characters. */
export function isBlank(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    const point = text.codePointAt(at) as number;
    kinds[point] ||= visibleCharacter.test(String.fromCodePoint(point)) ? visible : invisible;
    if (kinds[point] === visible) return false;
    if (point > 0xffff) at++;
  }
  return true;
}
