import { z } from 'zod';
import { providerIds } from '../contracts/contract.js';
import { turnSchema } from '../conversation.js';
import { modelParametersSchema } from '../models/model-parameters.js';
import { attemptSchema } from './attempts.js';
import type { WrittenContent } from './chat-content.js';
import { jsonText } from './json-text.js';
import { requestBodySchema } from './request-body.js';
import { configuredSchema } from './settings.js';
import { endedChatsSchema } from './stored-chat.js';
import { bodyVersion, eachOf, version, writtenVersion } from './version.js';

/** All that crosses between processes: the job on the queue, and the messages on the relay. */

const provider = z.enum(providerIds);

const parameters = modelParametersSchema.optional();

/** The texts of most jobs: their conversation, and the caller's parameters for the model, absent means none. */
export const turnTextsSchema = z.object({ turns: z.array(turnSchema).min(1), parameters });

export type TurnTexts = z.output<typeof turnTextsSchema>;

/** The same, or the JSON text of a body that goes on as its client wrote it. */
export type JobTexts = TurnTexts | { bodyText: string };

/** Where texts lie that are too long for a job: their digest, in hexadecimal, and their length as JSON in UTF-8. */
const longTexts = z.object({ sha256: z.string(), bytes: z.int().positive() });

export type LongTexts = z.output<typeof longTexts>;

const jobFields = z.object({
  v: version,
  ...attemptSchema.shape,
  /** Id of the chat; absent means the job's, as in a first attempt. */
  chatId: z.string().optional(),
  /** Absent, like the parameters, where the texts lie beside the job. */
  turns: jsonText(turnTextsSchema.shape.turns).optional(),
  parameters: jsonText(modelParametersSchema).optional(),
  /** In place of turns and parameters: a request that goes on as its client wrote it, and the text of its body. */
  body: requestBodySchema.optional(),
  bodyText: z.string().optional(),
  texts: longTexts.optional(),
  /** Whether it must fail if the model refuses a hint of the parameters; absent means to ask without that hint. */
  isStrict: z.literal(true).optional(),
  /** When the caller stops waiting, in milliseconds since the epoch; set once at the API and binding for everyone. */
  deadline: z.number(),
  /** The API process that waits for the outcome: the id of its node in the relay. */
  replyTo: z.string(),
  /** When the records of a stored chat end, in milliseconds since the epoch; absent in an ordinary job. */
  keptUntil: z.number().optional(),
  /** Id of the user who asks. */
  user: z.string(),
  /** Whether the caller reads the reply piece by piece; absent means not. */
  stream: z.boolean().optional(),
  /**
   * The parts of the reply that its caller can be given beside texts and calls: opaque ones, or also thinking that
   * people read. Absent means neither.
   */
  reasoning: z.enum(['opaque', 'shown']).optional(),
  /** When the first piece has to be there, in milliseconds since the epoch; absent means by the deadline of all. */
  firstDeltaBy: z.number().optional(),
  /** The caller's trace, as in https://www.w3.org/TR/trace-context/#traceparent-header. */
  traceparent: z.string().optional(),
});

/** A conversation to answer; the payload of a job on the queue `chat-<provider>`. */
export const chatJobSchema = jobFields.refine(
  ({ turns, body, bodyText, texts }) => (body ? bodyText : turns) !== undefined || texts !== undefined,
);

/** The job as a worker reads it. */
export type ChatJob = z.output<typeof chatJobSchema>;

/** The job as it lies on the queue. */
export type ChatJobPayload = z.input<typeof chatJobSchema>;

/** A job whose texts are written. */
export type WrittenJob = Omit<ChatJob, 'v' | 'turns' | 'parameters' | 'bodyText' | 'texts'> & {
  readonly written: WrittenContent;
};

/** Writes a job down for the queue; `chatJobSchema` reads it back. */
export function encodeWrittenJob({ written: { texts }, ...job }: WrittenJob): ChatJobPayload {
  const written = { v: versionOf(job), ...job };
  if ('bytes' in texts) return { ...written, texts: { sha256: texts.sha256, bytes: texts.size } };
  return 'body' in texts ? { ...written, bodyText: texts.body } : { ...written, ...texts };
}

const versionOf = ({ body }: Pick<ChatJob, 'body'>): number => (body ? bodyVersion : writtenVersion);

/** Writes a job down again that was read; its texts stay where they are. */
export function encodeChatJob({ turns, parameters, ...read }: ChatJob): ChatJobPayload {
  const job = { ...read, v: versionOf(read) };
  if (job.texts || job.body) return job;
  return {
    ...job,
    turns: JSON.stringify(turns),
    ...(parameters && { parameters: JSON.stringify(parameters) }),
  };
}

/** Published on `reply.<api node>` when jobs have ended; on `reply.kept` for stored chats, without their outcomes. */
export const resultMessageSchema = z.object({
  v: version,
  settled: z.array(
    z.object({
      /** The chat's id; any of its attempts may have ended. */
      jobId: z.string(),
      /** The text of `encodeOutcome`; absent when it is too large to send along. */
      outcome: z.string().optional(),
    }),
  ),
});

export type ResultMessage = z.output<typeof resultMessageSchema>;

/** Published on `cancel.<provider>` when no request waits for these chats; `jobIds` are the chats' ids. */
export const cancelSchema = z.object({
  v: version,
  jobIds: z.array(z.string()),
  /** Ids of removed users: all their chats end, also those that are still queued. */
  users: z.array(z.string()).optional(),
});

export type Cancel = z.output<typeof cancelSchema>;

/** Published on `limit.<provider>` when a pool got a 429 from the provider, so that its other pools wait too. */
export const rateLimitSchema = z.object({
  v: version,
  provider,
  /** The worker that got the 429. */
  worker: z.string(),
  /** How long, in milliseconds; not until when, because the clocks of two machines differ. */
  holdMs: z.number(),
  model: z.string(),
  /** Id of the only user that it holds; absent if it holds all. */
  user: z.string().optional(),
});

export type RateLimitMessage = z.output<typeof rateLimitSchema>;

/** A name or a code that operators see; longer ones are not valid. */
const shortText = z.string().max(300);

/** A model that a pool does not call freely, for all users or one; null stands for the account: every model. */
const modelBreakerSchema = z.object({
  model: shortText.nullable(),
  /** `limited` by the provider's 429; `half-open` takes one call at a time. */
  state: z.enum(['open', 'half-open', 'limited']),
  /** Time until the next call, in milliseconds. */
  nextProbeMs: z.number(),
  /** A failure's code; of the account `credentials`, `credit`, `unreachable`, `operator`; later releases have more. */
  reason: shortText.optional(),
  /** Id of the only user whose calls it refuses or holds back; absent if it concerns all calls. */
  user: shortText.optional(),
});

export type ModelBreaker = z.output<typeof modelBreakerSchema>;

/** How the calls of a pool's provider have gone. */
const callStatsSchema = z.object({
  count: z.int().positive(),
  /** The shares, from 0 to 1, of calls that failed by the provider's fault, and of those refused with a 429. */
  errorRate: z.number(),
  rateLimitRate: z.number(),
  /** How long the calls took that gave a reply, in milliseconds; absent when none did. */
  latencyMs: z.object({ p50: z.number(), p95: z.number() }).optional(),
});

export type CallStats = z.output<typeof callStatsSchema>;

/** The last call of a pool's provider that failed. Ages, because the clocks of two machines differ. */
const lastErrorSchema = z.object({
  /** The failure's code. */
  code: shortText,
  /** How long ago it ended, in milliseconds. */
  agoMs: z.number(),
  /** How long ago the first call failed with this code since one gave a reply or failed otherwise, in milliseconds. */
  sinceMs: z.number(),
});

export type LastError = z.output<typeof lastErrorSchema>;

/** The jobs of a pool that ended in the last five minutes, and how long they took from their first call on. */
const serviceStatsSchema = z.object({
  count: z.int().positive().max(1_000_000_000),
  /** The time in which they ended, in milliseconds: less than five minutes for a younger pool. */
  overMs: z.number().min(1).max(3_600_000),
  meanMs: z.number().min(0).max(86_400_000),
  p50Ms: z.number().min(0).max(86_400_000),
  p99Ms: z.number().min(0).max(86_400_000),
  /** The provider's waiting jobs at the beginning, over all workers; absent if they were not counted. */
  waitingBefore: z.int().min(0).max(1_000_000_000).optional(),
});

export type ServiceStats = z.output<typeof serviceStatsSchema>;

/** The breakers for all users come first, then those for one user each. */
export const maxBreakers = 100;

/** The state of a pool; `stopped` comes once, as its last. */
export const poolHeartbeatSchema = z.object({
  v: version,
  provider,
  worker: shortText,
  state: z.enum(['serving', 'probing', 'paused', 'stopped']),
  /** Why a pool takes no jobs whose breakers are closed: `clock`, `operator`, or what a later release says. */
  pausedBy: shortText.optional(),
  concurrency: z.number(),
  inFlight: z.number(),
  /** Jobs of this provider, but for the asynchronous ones, that no worker at all has taken yet. */
  waiting: z.number(),
  /** The asynchronous ones, which are taken after those; absent when there are none. */
  waitingAsync: z.number().optional(),
  /** Waiting jobs by level of fair share, from 0 to the last with any; absent when only the first level has any. */
  waitingByLevel: z.array(z.number()).optional(),
  waitingAsyncByLevel: z.array(z.number()).optional(),
  /** Time until the operators' rate lets another job begin, in milliseconds; absent if one may. */
  rateLeftMs: z.number().optional(),
  /** Moving mean of the time one job takes here, in milliseconds; 0 before the first was answered. */
  meanJobMs: z.number(),
  /** Age of the oldest running job, in milliseconds; absent when none is running. */
  oldestJobMs: z.number().optional(),
  /** The model for requests that name none; absent where there is none. */
  defaultModel: z.string().optional(),
  /** Other models that callers may name, as in `isModelAllowed`; absent where any plain name is allowed. */
  models: z.array(z.string()).optional(),
  /** The models that the worker's environment names, if operators have set others. */
  environment: z
    .object({ defaultModel: z.string().optional(), models: z.array(z.string()).optional() })
    .optional(),
  /** The operators' settings as the worker's environment sets them, where they are not the default. */
  configured: configuredSchema,
  /** The models whose calls it limits; absent when there are none. */
  breakers: z.array(modelBreakerSchema).max(maxBreakers).optional(),
  /** The calls of the last minute; absent when there were none. */
  calls: callStatsSchema.optional(),
  /** Absent when none has ended. */
  service: serviceStatsSchema.optional(),
  /** Absent before the first. */
  lastError: lastErrorSchema.optional(),
  /** Whether the simulator plays the provider. */
  simulated: z.boolean(),
  /** Which settings of the operators the pool works by, as in their record; 0 without one. */
  settingsVersion: z.int(),
  /** The release that the worker runs, and its machine's name. */
  release: shortText,
  host: shortText,
});

export type PoolHeartbeat = z.output<typeof poolHeartbeatSchema>;

/**
 * Published on `processes` once a second, at each change of a breaker or hold, and when a pool stops. That of an
 * API process has no pools.
 */
export const processHeartbeatSchema = z.object({
  v: version,
  worker: shortText,
  pools: eachOf(poolHeartbeatSchema, 100),
  /** The ended chats of an API process; absent in the heartbeat of a worker. */
  chats: eachOf(endedChatsSchema, 100).optional(),
});

/** The record of a finished job is kept this long, in milliseconds, for an API process that missed the message. */
export const jobRecordTtlMs = 60_000;

/** Name of a provider's queue. */
export const queueName = (id: (typeof providerIds)[number]): string => `chat-${id}`;

/** Relay topics; see the schemas for what each carries. */
export const topics = {
  reply: (apiNode: string): string => `reply.${apiNode}`,
  storedResult: 'reply.kept',
  cancel: (id: (typeof providerIds)[number]): string => `cancel.${id}`,
  limit: (id: (typeof providerIds)[number]): string => `limit.${id}`,
  deltas: (apiNode: string): string => `deltas.${apiNode}`,
  resend: (id: (typeof providerIds)[number]): string => `resend.${id}`,
  settings: (id: (typeof providerIds)[number]): string => `settings.${id}`,
  allSettings: 'settings.*',
  /** One topic for all workers: it goes by Redis' publish and subscribe, which is used without patterns. */
  processes: 'processes',
} as const;

/** The users who were removed lately, whose jobs may still be queued: a record in the queue's store. */
const removedUsersSchema = z.object({ v: version, users: z.array(z.string()) });

/** The key of the record. */
export const removedUsersKey = 'users.removed';

/** At most this many ids are recorded; workers remember those that they have read before. */
const maxRecorded = 1000;

/** The record as text, with the ids that came last; `decodeRemovedUsers` reads it back. */
export const encodeRemovedUsers = (ids: readonly string[]): string =>
  JSON.stringify({ v: writtenVersion, users: ids.slice(-maxRecorded) });

/** The ids of the users; none where there is no record, or one that this release cannot read. */
export const decodeRemovedUsers = (text: string | undefined): string[] =>
  jsonText(removedUsersSchema).safeParse(text).data?.users ?? [];
