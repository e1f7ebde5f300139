import { z } from 'zod';
import type { Target } from '../contracts/contract.js';
import { failureCodes } from '../failures.js';
import { type Attempt, attemptSchema, endedAttemptSchema, providerErrorSchema, usage } from './attempts.js';
import { jsonText } from './json-text.js';
import { markSchema } from './parts.js';
import { version, writtenVersion } from './version.js';

const completion = {
  /** The tape: the texts of the reply and the arguments of its calls, joined. */
  text: z.string(),
  /** Where its parts begin; absent means that all of it is text. */
  marks: z.array(markSchema).optional(),
  /** The request's hints that the model was asked without, because it refused them; absent means none. */
  ignored: z.array(z.string()).optional(),
  /** How the conversation was changed for the provider (`changeNames`); absent means not at all. */
  changes: z.array(z.string()).optional(),
  /** The model that answered, in the provider's words. */
  model: z.string(),
  /** The model that the provider was asked for, defaults included; absent without a fallback. */
  askedModel: z.string().optional(),
  usage,
  /** The call whose text it is, as in its deltas; absent for a reply that was not streamed. */
  callId: z.string().optional(),
};

const timings = {
  /** Milliseconds the job waited before a worker took it; of all attempts, as is the next. */
  queueMs: z.number(),
  /** Milliseconds spent at the provider, all attempts and the pause between them included. */
  providerMs: z.number(),
  /** Milliseconds from the first call of the last attempt to its first delta; absent without one. */
  firstTokenMs: z.number().optional(),
  /** All attempts in order, the last of which gave the outcome; absent when there was only one. */
  attempts: z.array(endedAttemptSchema).optional(),
};

/**
 * How a chat job ended, as it crosses the queue: `truncated` is a reply cut at the token limit, `blocked` one withheld
 * by the provider's content filter, `cancelled` a job that no request waited for any more.
 */
const outcomeSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('ok'), ...completion, ...timings }),
  z.object({ kind: z.literal('truncated'), ...completion, ...timings }),
  z.object({
    kind: z.literal('blocked'),
    /** The category that a classifier withheld a stream by, behind its text; absent for other filters. */
    refusal: z
      .string()
      .regex(/^\w{1,50}$/)
      .optional()
      .catch(undefined),
    usage,
    ...timings,
  }),
  z.object({ kind: z.literal('cancelled'), ...timings }),
  z.object({
    kind: z.literal('failed'),
    /** A code that a newer release has and this one does not counts as `internal`. */
    code: z.enum(failureCodes).catch('internal'),
    retryable: z.boolean(),
    retryAfterMs: z.number().optional(),
    /** The attempt that follows: then this is the end of a job, and not of the chat. */
    next: attemptSchema.optional(),
    /** Whether the provider refused our own credentials; absent means not. */
    credentialsRefused: z.boolean().optional(),
    providerError: providerErrorSchema,
    /** The parameter that the provider refused; absent where it does not say. */
    refusedParameter: z.string().optional(),
    /** The capability that was refused, such as `image_block` or `beta_header:x`; absent unless its text names it. */
    capability: z
      .string()
      .regex(/^[a-z_]{1,40}(:[\w.-]{1,64})?$/)
      .optional()
      .catch(undefined),
    contextTokens: endedAttemptSchema.shape.contextTokens,
    askedTokens: endedAttemptSchema.shape.askedTokens,
    limitMs: endedAttemptSchema.shape.limitMs,
    fellSilent: endedAttemptSchema.shape.fellSilent,
    /** The model whose breaker refused the job; absent for other failures. */
    failingModel: z.string().optional(),
    /** The tokens of a reply without text, which fails and is billed. */
    usage,
    ...timings,
  }),
]);

export type Outcome = z.output<typeof outcomeSchema>;

/** The attempt that follows the job that ended so; undefined when the chat has ended. */
export const nextOf = (outcome: Outcome): Attempt | undefined =>
  outcome.kind === 'failed' ? outcome.next : undefined;

/** The provider and model that wrote a reply, if the request names others. */
export function writerOf({
  attempts,
  model,
  askedModel = model,
}: {
  readonly attempts?: readonly Target[] | undefined;
  readonly model?: string | undefined;
  readonly askedModel?: string | undefined;
}): Target | undefined {
  const last = attempts?.at(-1);
  return last && { provider: last.provider, model: askedModel };
}

/** Stands in for the outcome of a chat that was cancelled without an answer of its worker. */
export const cancelledOutcome: Outcome = { kind: 'cancelled', queueMs: 0, providerMs: 0 };

/** Stands in for an outcome that cannot be parsed. */
export const brokenOutcome = {
  kind: 'failed',
  code: 'internal',
  retryable: false,
  queueMs: 0,
  providerMs: 0,
} satisfies Outcome;

/** Stands in for a job that broke or was given up: outages do that, so another attempt is worth it. */
export const givenUpOutcome = { ...brokenOutcome, retryable: true } satisfies Outcome;

/** An outcome as JSON text, with its version; see `jsonText` for why it crosses the queue as a string. */
export const encodeOutcome = (outcome: Outcome): string => JSON.stringify({ v: writtenVersion, ...outcome });

/** Reads what `encodeOutcome` wrote. Throws for anything else. */
export const decodeOutcome = (text: unknown): Outcome => writtenOutcome.parse(text);

const writtenOutcome = jsonText(
  z
    .looseObject({ v: version })
    .transform((written): unknown => written)
    .pipe(outcomeSchema),
);
