import { z } from 'zod';
import { type ProviderId, providerIds } from '../contracts/contract.js';
import { type OpaqueRole, opaqueRoles } from '../conversation.js';
import { version } from './version.js';

/** How much opaque data a reply keeps, in characters. */
export const maxOpaqueLength = 1_048_576;

/** The length of the tape before the part, in UTF-16 units. */
const at = z.int().nonnegative();

/**
 * The place where a part of a reply begins. A reply is one text, the *tape*: its texts, its thinking, its opaque data
 * and the arguments of its calls, joined. Before the first mark the tape is text. No two marks have the same place,
 * because a part is never empty: a call and an opaque part have at least the two characters `{}`.
 */
export const markSchema = z.discriminatedUnion('kind', [
  /** Text behind another part, which may be a text, too. */
  z.object({ kind: z.literal('text'), at }),
  /** Thinking in words, for the reader; it is never sent back. */
  z.object({ kind: z.literal('thinking'), at }),
  /** Data that the model gets back as they are: JSON text of an object. */
  z.object({
    kind: z.literal('opaque'),
    at,
    /** In UTF-16 units: a reader of a tape that grows hands the part on when all of it is there. */
    length: z.int().min(2),
    /** Who wrote it, and may be sent it. */
    provider: z.enum(providerIds),
    model: z.string(),
    role: z.enum(opaqueRoles),
  }),
  z.object({
    kind: z.literal('call'),
    at,
    /** The provider's id of the call, or our own where the provider gives none. */
    id: z.string(),
    /** The name of the tool. */
    name: z.string(),
    /** The call's other fields at its provider: JSON text of an object. */
    extra: z.string().optional(),
  }),
]);

export type Mark = z.output<typeof markSchema>;

export type CallMark = Extract<Mark, { kind: 'call' }>;

/** An opaque part of a reply, with its data as far as the tape has them. */
export interface OpaquePiece {
  readonly kind: 'opaque';
  readonly data: string;
  readonly role: OpaqueRole;
  readonly provider: ProviderId;
  readonly model: string;
}

/** A part of a reply: text, thinking, opaque data, or a call with its arguments as far as the tape has them. */
export type ReplyPiece =
  | { readonly kind: 'text' | 'thinking'; readonly text: string }
  | OpaquePiece
  | (CallMark & { readonly arguments: string });

/** A reply in its parts, in their order. */
export function piecesOf({
  text,
  marks = [],
}: {
  text: string;
  marks?: readonly Mark[] | undefined;
}): ReplyPiece[] {
  const head = text.slice(0, marks[0]?.at);
  const pieces = marks.map((mark, place) => toPiece(mark, text.slice(mark.at, marks[place + 1]?.at)));
  return head === '' ? pieces : [{ kind: 'text', text: head }, ...pieces];
}

function toPiece(mark: Mark, text: string): ReplyPiece {
  switch (mark.kind) {
    case 'text':
    case 'thinking':
      return { kind: mark.kind, text };
    case 'opaque': {
      const { kind, role, provider, model } = mark;
      return { kind, data: text, role, provider, model };
    }
    case 'call':
      return { ...mark, arguments: text };
  }
}

/** The texts of a reply, joined, without its other parts. */
export const textOfTape = (reply: Parameters<typeof piecesOf>[0]): string =>
  piecesOf(reply)
    .map((piece) => (piece.kind === 'text' ? piece.text : ''))
    .join('');

/** Whether a reply calls a tool. */
export const hasCalls = ({ marks = [] }: { marks?: readonly Mark[] | undefined }): boolean =>
  marks.some(({ kind }) => kind === 'call');

/** A piece of a reply's text on its way to a reader, which may be lost; an empty one says how far the text has got. */
const deltaSchema = z.object({
  /** The chat's, as in `resendSchema`. */
  jobId: z.string(),
  /** Which reader at the API process it is for; absent means the one who asked for the chat. */
  reader: z.string().optional(),
  /** The call whose text it is: another call for the same job gives another text. */
  callId: z.string(),
  /** The provider and model that write it, where the request names others. */
  provider: z.enum(providerIds).optional(),
  /** The model that the provider of a fallback was asked for. */
  model: z.string().optional(),
  /** The length of the text before it, in UTF-16 units. */
  at: z.int().nonnegative(),
  text: z.string(),
  /**
   * The marks that lie in `[at, at + text.length]`; one at the upper end may be left to the next delta, which has it in
   * any case. Absent means none.
   */
  marks: z.array(markSchema).optional(),
  /** The request's hints that the model was asked without, because it refused them; absent means none. */
  ignored: z.array(z.string()).optional(),
  /** How the conversation was changed for the provider (`changeNames`); absent means not at all. */
  changes: z.array(z.string()).optional(),
});

export type Delta = z.output<typeof deltaSchema>;

/** Published on `deltas.<api node>`. */
export const deltasSchema = z.object({ v: version, deltas: z.array(deltaSchema) });

/** The message as it is published. */
export type WrittenDeltas = z.input<typeof deltasSchema>;

/** Published on `resend.<provider>` by an API process that lacks a part of a text, or begins to read one. */
export const resendSchema = z.object({
  v: version,
  jobId: z.string(),
  /** The API process that deltas go to from now on, beginning at `from`. */
  api: z.string(),
  /** The reader who asks; absent means the one who asked for the chat. Each has a place of its own in the text. */
  reader: z.string().optional(),
  from: z.int().nonnegative(),
  /** How many UTF-16 units it takes before it asks again; absent means all there is, and what follows. */
  max: z.int().positive().optional(),
  /** The reader has left: send it nothing more. */
  left: z.literal(true).optional(),
});

export type Resend = z.output<typeof resendSchema>;

/** The text from `start` on, at most `maxLength` UTF-16 units of it, without half a surrogate pair at its end. */
export const sliceText = (text: string, start: number, maxLength: number): string =>
  text.slice(start, start + maxLength).replace(/[\ud800-\udbff]$/, '');
