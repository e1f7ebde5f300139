import { z } from 'zod';
import { providerIds } from '../contracts/contract.js';
import { failureCodes } from '../failures.js';

/** A chat is a sequence of attempts, each a job on the queue of its provider; the first has the id of the chat. */

const provider = z.enum(providerIds);

const target = z.object({ provider, model: z.string().optional() });

/** Tokens as the provider counted them; absent where it did not. */
export const usage = z
  .object({
    inputTokens: z.number(),
    outputTokens: z.number(),
    /** Input tokens read from the provider's cache, and written to it. */
    cachedTokens: z.number().optional(),
    cacheWriteTokens: z.number().optional(),
    /** The part of the written ones that the cache keeps for an hour. */
    cacheWrite1hTokens: z.number().optional(),
    /** Output tokens that the model thought with. */
    reasoningTokens: z.number().optional(),
  })
  .optional();

export type Usage = NonNullable<z.output<typeof usage>>;

const matching = (pattern: RegExp) => z.string().regex(pattern).optional();

/** HTTP status and type of a provider's error and the place that it refuses: its text may quote the prompt. */
export const providerErrorSchema = z
  .object({
    status: z.int().optional(),
    type: matching(/^[\w.-]{1,64}$/),
    place: matching(/^[\w.$[\]]{1,999}$/).catch(undefined),
  })
  .optional()
  .catch(undefined);

export type ProviderError = NonNullable<z.output<typeof providerErrorSchema>>;

/** How an attempt ended, and what it cost. */
export const endedAttemptSchema = z.object({
  ...target.shape,
  /** `ok`, or what it failed with. */
  code: z.enum(['ok', ...failureCodes]).catch('internal'),
  usage,
  retryable: z.boolean().optional(),
  retryAfterMs: z.number().optional(),
  /** Whether the provider refused our own credentials, and not what the caller asked for. */
  credentialsRefused: z.boolean().optional(),
  providerError: providerErrorSchema,
  /** The longest conversation that the model takes, in its tokens; absent unless the provider names it. */
  contextTokens: z.int().positive().optional().catch(undefined),
  /** The tokens of a conversation that is longer, and of the reply that it asks for; absent as the limit is. */
  askedTokens: z.object({ inputTokens: z.int(), maxTokens: z.int().optional() }).optional().catch(undefined),
  /** The limit that ended a call with `provider_timeout`, and whether the provider fell silent in its stream. */
  limitMs: z.number().positive().optional().catch(undefined),
  fellSilent: z.literal(true).optional().catch(undefined),
  /** The times of the outcome; absent for an attempt that was never queued. */
  queueMs: z.number().optional(),
  providerMs: z.number().optional(),
});

export type EndedAttempt = z.output<typeof endedAttemptSchema>;

/** An attempt at a chat, with those that ended before it and those that remain should it fail. */
export const attemptSchema = z.object({
  ...target.shape,
  /** From 1; absent means the first. */
  attempt: z.int().positive().optional(),
  /** In their order; absent means none. */
  fallback: z.array(target).optional(),
  /** The attempts that have failed, in their order; absent means none. */
  earlier: z.array(endedAttemptSchema).optional(),
});

export type Attempt = z.output<typeof attemptSchema>;

/** The attempt that follows this one, which has ended so; undefined when none remains. */
export function attemptAfter(current: Attempt, ended: EndedAttempt): Attempt | undefined {
  const { attempt = 1, fallback: [next, ...fallback] = [], earlier = [] } = current;
  return next && { ...next, attempt: attempt + 1, fallback, earlier: [...earlier, ended] };
}

/** Id of the job of a chat's attempt. */
export const jobIdOf = (chatId: string, attempt = 1): string =>
  attempt === 1 ? chatId : `${chatId}-${attempt}`;

/** The chat and the attempt of a job's id; the id of a chat is a UUID. */
export function chatAndAttemptOf(jobId: string): { chat: string; attempt: number } {
  const [, chat = jobId, attempt = '1'] = /^(.{36})-(\d)$/.exec(jobId) ?? [];
  return { chat, attempt: Number(attempt) };
}

const mendable: ReadonlySet<string> = new Set([
  'context_length_exceeded',
  'provider_error',
  'provider_rate_limited',
  'provider_timeout',
  'provider_unavailable',
]);

/** The beginning of the error type of a conversation that a provider's classifier has refused, with its category. */
export const refusalWord = 'refusal_';

/** The category that a provider's classifier has refused a conversation by; undefined for any other end. */
export const refusalOf = ({ code, providerError }: Pick<EndedAttempt, 'code' | 'providerError'>) =>
  code === 'content_blocked' && providerError?.type?.startsWith(refusalWord)
    ? providerError.type.slice(refusalWord.length)
    : undefined;

/**
 * Whether another provider may do what this one has failed to do: another model may take a longer conversation, and one
 * that a classifier has refused.
 */
export const isMendable = (ended: EndedAttempt): boolean =>
  mendable.has(ended.code) || ended.credentialsRefused === true || refusalOf(ended) !== undefined;
