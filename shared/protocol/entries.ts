import { z } from 'zod';
import { providerIds } from '../contracts/contract.js';
import { providerErrorSchema } from './attempts.js';
import { jsonText } from './json-text.js';
import { eachOf, version, writtenVersion } from './version.js';

/**
 * The entries of the ledger: what became of each run of a job, written by the process that knows it, and read by the
 * one that writes the ledger's tables. None has a text of a caller or a provider. Times are in milliseconds since the
 * epoch, by the store's clock.
 */

const provider = z.enum(providerIds);
/** PostgreSQL takes no U+0000; models and types of errors have the names that others give them. */
const text = (max: number) => z.string().overwrite((value) => value.replaceAll('\0', '').slice(0, max));
const time = z.number().min(0).max(8.64e15);
const count = z.number().catch(Number.NaN);

/** Who asked for a chat, and what for; the name of its jobs in the queue, so that it is read without their texts. */
const originSchema = z.object({
  /** Id and name of the user. */
  user: text(200),
  name: text(200).optional(),
  /** Id of the access token; absent for a name with its secret. */
  token: text(64).optional(),
  /** `chat` or `completions`. */
  api: text(20),
  /** Whether a session of the console asked. */
  console: z.literal(true).optional(),
  /** The provider and model that the request named. */
  provider,
  model: text(200).optional(),
  /** The client's own name for a row of chats. */
  session: text(64).optional(),
  stream: z.literal(true).optional(),
  stored: z.literal(true).optional(),
  deadline: time,
});

export type Origin = z.output<typeof originSchema>;

/** The name of a chat's jobs. */
export const encodeOrigin = (origin: Origin): string => JSON.stringify(origin);

const originText = jsonText(originSchema);

/** Who asked for a job, by its name; undefined for one that an older release has added. */
export const decodeOrigin = (name: string): Origin | undefined => originText.safeParse(name).data;

const callTokens = z.object({
  input: count,
  cached: count,
  written: count,
  writtenFor1h: count,
  output: count,
  thinking: count,
});

/** The tokens of a call. `cached` and `written` are in `input`, `writtenFor1h` in `written`, `thinking` in `output`. */
export type CallTokens = Readonly<z.output<typeof callTokens>>;

const meteredRow = z.object({
  kind: z.enum(['first', 'retry', 'repetition']).catch('first'),
  startedAt: time,
  endedAt: time,
  /** The model that was asked, and the one that answered, if it said so. */
  model: text(200),
  answered: text(200).optional(),
  /** Whether the provider has counted the tokens, or they are estimated: then they are at least so many. */
  known: z.enum(['told', 'estimated']),
  code: text(64),
  /** HTTP status of the answer, and the type of the provider's error. */
  status: z.int().optional().catch(undefined),
  type: text(100).optional(),
  /** HTTP requests: Vertex AI may take several to one reply. */
  requests: count,
  tokens: callTokens,
  /** The tier of service that answered, in the provider's words; absent where it does not say. */
  tier: text(64).optional(),
  /** The provider's id of the request, for its support. */
  requestId: text(128).optional(),
});

/** A call that a connection took, and what is known of its cost. */
export type MeteredRow = Readonly<z.output<typeof meteredRow>>;

/** An attempt that has ended. */
const endedAttempt = z.object({
  provider,
  model: text(200).optional(),
  code: text(64),
  error: providerErrorSchema,
});

/** How a chat ended at its last attempt, as the worker knows it. */
const endSchema = z.object({
  code: text(64),
  endedAt: time,
  /** The provider and model of the last attempt, or those that answered. */
  provider,
  model: text(200).optional(),
  error: providerErrorSchema,
  /** All attempts, where there were several. */
  attempts: eachOf(endedAttempt, 10).optional(),
  /** How long its jobs waited, and how long they were at the providers; the first token counts from the last call. */
  waitedMs: z.number().optional(),
  calledMs: z.number().optional(),
  firstTokenMs: z.number().optional(),
});

export type ChatEnd = z.output<typeof endSchema>;

const ofChat = { v: version, chat: text(64), origin: originText };
const ofJob = { ...ofChat, attempt: z.int().min(1).max(99), addedAt: time, provider };

const entrySchema = z.discriminatedUnion('kind', [
  /** A run of a job has ended: it is over, or went back to the queue (`goesOn`) after these calls. */
  z.object({
    kind: z.literal('run'),
    ...ofJob,
    /** From 1; one more each time that its worker died or lost its lock. */
    run: z.int().min(1).max(99),
    calls: eachOf(meteredRow, 100),
    goesOn: z.literal(true).optional(),
    end: endSchema.optional(),
  }),
  /** Its runs up to this one were lost, unless their own entries say more. */
  z.object({ kind: z.literal('lost'), ...ofJob, runs: z.int().min(1).max(99), end: endSchema.optional() }),
  /** How a chat ended for the API process that alone knows it: refused, left by its caller, or cancelled. */
  z.object({ kind: z.literal('left'), ...ofChat, code: text(64), addedAt: time, endedAt: time }),
  /** A request that was given the chat of another. */
  z.object({ kind: z.literal('joined'), ...ofChat, joins: text(64), endedAt: time }),
]);

export type Entry = z.output<typeof entrySchema>;
type Written<E> = E extends unknown ? Omit<E, 'v' | 'origin'> & { origin: string } : never;
/** An entry before it is written: its origin is the name of the chat's jobs. */
export type NewEntry = Written<Entry>;

/** An entry as JSON text. */
export const encodeEntry = (entry: NewEntry): string => JSON.stringify({ v: writtenVersion, ...entry });

const entryText = jsonText(entrySchema);

/** Reads what `encodeEntry` wrote; undefined for anything else. */
export const decodeEntry = (entry: string): Entry | undefined => entryText.safeParse(entry).data;
