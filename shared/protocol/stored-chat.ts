import { createHash } from 'node:crypto';
import { z } from 'zod';
import { providerIds } from '../contracts/contract.js';
import { type Attempt, attemptSchema } from './attempts.js';
import { jsonText } from './json-text.js';
import { decodeOutcome, encodeOutcome, type Outcome } from './outcome.js';
import { version, writtenVersion } from './version.js';

/** A chat that may be come back to, without its outcome and conversation. Times are in milliseconds since the epoch. */
const storedChatSchema = z.object({
  v: version,
  /** Also that of its first job. */
  id: z.string(),
  /** Name of the user. */
  owner: z.string(),
  /** Id of the user. */
  ownerId: z.string(),
  /** The provider and the model that the request names. */
  provider: z.enum(providerIds),
  model: z.string().optional(),
  /** The current attempt; absent means the first, at the provider of the request, without a fallback. */
  current: attemptSchema.optional(),
  /** Tells whether a request that comes with the same key is the same. */
  requestHash: z.string(),
  createdAt: z.number(),
  /** The job's. */
  deadline: z.number(),
  /** When its records end. */
  keptUntil: z.number(),
  /** Whether it has parts, tools or a format. */
  parts: z.literal(true).optional(),
  /** How the conversation was changed before its job was made (`changeNames`); absent means not at all. */
  changes: z.array(z.string()).optional(),
});

export type StoredChat = z.output<typeof storedChatSchema>;

const storedResultSchema = z.object({
  v: version,
  /** When it ended, in milliseconds since the epoch. */
  at: z.number(),
  /** The text of `encodeOutcome`. */
  outcome: z.string().transform(decodeOutcome),
});

/** The attempt that is under way. */
export const currentOf = ({ current, provider, model }: StoredChat): Attempt =>
  current ?? { provider, model };

/** How long an outcome waits for a store that is away, in milliseconds: a restart or a failover takes seconds. */
export const resultTimeoutMs = 10_000;

/** Where a stored chat is recorded. */
export const chatKey = (id: string): string => `chat.${id}`;

/** The key of a stored chat's outcome; the first one written counts. */
export const resultKey = (id: string): string => `outcome.${id}`;

/** Where the id is recorded of the chat that a caller's `Idempotency-Key` stands for; tells neither of the two. */
export const idempotencyIndexKey = (owner: string, key: string): string =>
  `key.${createHash('sha256').update(`${owner}\0${key}`).digest('hex')}`;

/** A stored chat as JSON text. */
export const encodeStoredChat = (chat: StoredChat): string =>
  JSON.stringify(chat satisfies z.input<typeof storedChatSchema>);

/** Reads what `encodeStoredChat` wrote. Throws for anything else. */
export const decodeStoredChat = (text: string): StoredChat => jsonText(storedChatSchema).parse(text);

/** The outcome of a stored chat, which ended `at`, as JSON text. */
export const encodeStoredResult = (outcome: Outcome, at: number): string =>
  JSON.stringify({ v: writtenVersion, at, outcome: encodeOutcome(outcome) } satisfies z.input<
    typeof storedResultSchema
  >);

/** Reads what `encodeStoredResult` wrote. Throws for anything else. */
export const decodeStoredResult = (text: string) => jsonText(storedResultSchema).parse(text);

const count = z.int().min(0).max(1_000_000_000);
const shortText = z.string().max(300);

/** The chats at a provider that ended in the last five minutes, at one API process, while their callers waited. */
export const endedChatsSchema = z.object({
  provider: z.enum(providerIds),
  ended: count,
  /** Chats that failed by the fault of the provider or of its pool. */
  failed: count,
  /** Code of the last that failed; absent when none did. */
  code: shortText.optional(),
  /** The model of all that failed; absent when there are several, or it is not known. */
  model: shortText.optional(),
});

export type EndedChats = z.output<typeof endedChatsSchema>;
