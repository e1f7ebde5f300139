import { z } from 'zod';
import { providerIds } from '../contracts/contract.js';
import { failureCodes } from '../failures.js';
import { providerErrorSchema } from './attempts.js';
import { eachOf, version } from './version.js';

/** How API processes ask each other for the recent past. Ages cross, not times: the clocks of two machines differ. */

const provider = z.enum(providerIds);
const processId = z.string().min(1).max(64);
const shortText = z.string().max(300);
const count = z.int().min(0).max(Number.MAX_SAFE_INTEGER);
const tokens = z.number().min(0).max(Number.MAX_SAFE_INTEGER).optional();
/** 31 years: no process is as old, and what is much longer leads to no date. */
const ms = z.number().min(0).max(1e12);

/** Published on `history.ask`. */
export const historyAskSchema = z.object({
  v: version,
  /** The API process that asks; the answer goes to `history.<it>`. */
  from: processId,
  /** By process, what has come from it; of one that is absent everything is wanted. */
  known: z
    .record(
      processId,
      z.object({
        /** All its chats up to this number. */
        last: count,
        /** All its samples but those that began so long ago at most. */
        samplesOfMs: ms,
      }),
    )
    .refine((known) => Object.keys(known).length <= 100),
});

export type HistoryAsk = z.output<typeof historyAskSchema>;

/** A `RequestCode`; a code that a newer release has and this one does not counts as `internal`. */
const requestCode = z.enum(['ok', 'truncated', 'blocked', 'cancelled', ...failureCodes]).catch('internal');
const attemptCode = z.enum(['ok', 'cancelled', ...failureCodes]).catch('internal');

/** A `RecentRequest` as it is sent, with an age in place of its times. */
export const sentRequestSchema = z.object({
  id: z.string().max(64),
  user: shortText,
  provider,
  model: shortText.optional(),
  streamed: z.boolean(),
  /** How long ago it ended. */
  endedAgoMs: ms,
  queuedMs: ms.optional(),
  startedMs: ms.optional(),
  firstTokenMs: ms.optional(),
  endedMs: ms,
  queueMs: ms.optional(),
  providerMs: ms.optional(),
  code: requestCode,
  attempts: z
    .array(
      z.object({
        provider,
        model: shortText.optional(),
        code: attemptCode,
        providerError: providerErrorSchema,
      }),
    )
    .max(10),
  inputTokens: tokens,
  outputTokens: tokens,
});

export type SentRequest = z.output<typeof sentRequestSchema>;

const percentiles = z.object({ p50: ms, p95: ms }).nullable();

/** A `Sample` as it is sent, with an age in place of its time. */
const sampleSchema = z.object({
  provider,
  /** How long ago it began. */
  agoMs: ms,
  waiting: count.nullable(),
  active: count.nullable(),
  inFlight: count.nullable(),
  concurrency: count.nullable(),
  arrivals: count,
  ended: count,
  failed: count,
  queueMs: percentiles,
  providerMs: percentiles,
});

export type SentSample = z.output<typeof sampleSchema>;

/** Chats of one message. */
export const maxRequestsSent = 200;

/** Sent on `history.<API process>`. */
export const historyAnswerSchema = z.object({
  v: version,
  from: processId,
  /** Its chats after the first number, up to the last; missing ones are no longer kept. */
  after: count,
  last: count,
  requests: eachOf(sentRequestSchema, maxRequestsSent),
  samples: eachOf(sampleSchema, 700),
});

export type HistoryAnswer = z.output<typeof historyAnswerSchema>;

export const historyTopics = {
  ask: 'history.ask',
  answer: (apiNode: string): string => `history.${apiNode}`,
} as const;
