import { z } from 'zod';
import { providerIds } from './contract.js';
import { jsonText } from './json-text.js';

/**
 * What crosses between processes, and nothing else does: the job on the queue, and the messages on the relay. Each
 * carries `v`, so that processes of two releases can tell what they understand.
 */

const provider = z.enum(providerIds);

/** A conversation to answer; the payload of a job on the queue `chat-<provider>`. */
export const chatJobSchema = z.object({
  v: z.literal(1),
  provider,
  model: z.string().optional(),
  turns: jsonText(
    z.array(z.object({ role: z.enum(['system', 'user', 'assistant']), content: z.string() })).min(1),
  ),
  /** When the caller stops waiting, in milliseconds since the epoch; set once at the API and binding for everyone. */
  deadline: z.number(),
  /** The API process that waits for the outcome. */
  replyTo: z.string(),
});

/** The job as a worker reads it. */
export type ChatJob = z.output<typeof chatJobSchema>;

/** The job as it lies on the queue. */
export type ChatJobPayload = z.input<typeof chatJobSchema>;

/** Writes a job down for the queue; `chatJobSchema` reads it back. */
export const encodeChatJob = (job: ChatJob): ChatJobPayload => ({ ...job, turns: JSON.stringify(job.turns) });

/** Told on `reply.<api node>` when jobs have settled. */
export const replySchema = z.object({
  v: z.literal(1),
  settled: z.array(
    z.object({
      jobId: z.string(),
      /** As `encodeOutcome` writes it; absent when it is too large to send along. */
      outcome: z.string().optional(),
    }),
  ),
});

export type Reply = z.output<typeof replySchema>;

/** Told on `pool.<provider>.<worker>` once a second, at every change of the breaker, and once when the pool stops. */
export const poolBeatSchema = z.object({
  v: z.literal(1),
  provider,
  worker: z.string(),
  state: z.enum(['serving', 'probing', 'paused', 'stopped']),
  concurrency: z.number(),
  inFlight: z.number(),
  /** Jobs of this provider that no worker has taken yet, over all workers. */
  waiting: z.number(),
  /** Moving mean of the time one job takes here, in milliseconds; 0 before the first. */
  meanJobMs: z.number(),
  /** Whether the pool has a model for requests that name none. */
  hasDefaultModel: z.boolean(),
});

export type PoolBeat = z.output<typeof poolBeatSchema>;

/** The record of a finished job is kept this long, in milliseconds, for an API process that missed the telling. */
export const recordKeptMs = 60_000;

/** Name of a provider's queue. */
export const queueName = (id: (typeof providerIds)[number]): string => `chat-${id}`;

/** Relay topics; see the schemas for what each carries. */
export const topics = {
  reply: (apiNode: string): string => `reply.${apiNode}`,
  pool: (id: (typeof providerIds)[number], worker: string): string => `pool.${id}.${worker}`,
  allPools: 'pool.>',
} as const;
