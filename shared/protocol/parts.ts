import { z } from 'zod';

/**
 * The longest `data` of an opaque part of a call, in characters; as JSON text too, where it is handed out, so that each
 * one has room in a message and may come back.
 */
export const maxSignatureLength = 48_000;

/**
 * The place where a part of a reply begins. A reply is one text, the *tape*: its texts and the arguments of its calls,
 * joined. Before the first mark the tape is text. No two marks have the same place, because a part is never empty: a
 * call has at least the two characters `{}`.
 */
export const markSchema = z.discriminatedUnion('kind', [
  /** Text that follows a call. */
  z.object({ kind: z.literal('text'), at: z.int().nonnegative() }),
  z.object({
    kind: z.literal('call'),
    /** The length of the tape before it, in UTF-16 units. */
    at: z.int().nonnegative(),
    /** As the provider names the call, or as we do for one that does not. */
    id: z.string(),
    /** The name of the tool. */
    name: z.string(),
    /** The `data` of the opaque part that belongs before the call. */
    signature: z.string().optional(),
  }),
]);

export type Mark = z.output<typeof markSchema>;

export type CallMark = Extract<Mark, { kind: 'call' }>;

/** A part of a reply: text, or a call with its arguments as far as the tape has them. */
export type ReplyPiece =
  | { readonly kind: 'text'; readonly text: string }
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
  const pieces = marks.map((mark, place): ReplyPiece => {
    const piece = text.slice(mark.at, marks[place + 1]?.at);
    return mark.kind === 'text' ? { kind: 'text', text: piece } : { ...mark, arguments: piece };
  });
  return head === '' ? pieces : [{ kind: 'text', text: head }, ...pieces];
}

/** The calls of a reply, in their order. */
export const callsOf = (reply: Parameters<typeof piecesOf>[0]) =>
  piecesOf(reply).flatMap((piece) => (piece.kind === 'call' ? [piece] : []));

/** The texts of a reply, joined, without the arguments of its calls. */
export const textOfTape = (reply: Parameters<typeof piecesOf>[0]): string =>
  piecesOf(reply)
    .map((piece) => (piece.kind === 'text' ? piece.text : ''))
    .join('');

/** Whether a reply calls a tool. */
export const hasCalls = ({ marks = [] }: { marks?: readonly Mark[] | undefined }): boolean =>
  marks.some(({ kind }) => kind === 'call');
