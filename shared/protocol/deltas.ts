import { z } from 'zod';
import { providerIds } from '../contracts/contract.js';
import { markSchema } from './parts.js';
import { version } from './version.js';

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

export type DeltasMessage = z.output<typeof deltasSchema>;

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
