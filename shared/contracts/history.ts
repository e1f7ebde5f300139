import type { ProblemCode, ProviderId } from './contract.js';

/**
 * The recent past as operators see it, at `GET /admin/requests` and `GET /admin/samples`. Plain interfaces: the
 * OpenAPI document is generated from them. Times are RFC 3339 in UTC. It is kept in memory: a restart of the API
 * processes loses it.
 */

/** The end of a chat: a reply, which may be cut or withheld, a caller who left, a cancel, or this failure. */
export type RequestCode = 'ok' | 'truncated' | 'blocked' | 'cancelled' | ProblemCode;

/** An attempt at a chat. */
export interface RequestAttempt {
  provider: ProviderId;
  /** The requested model, or the provider's name for it once that has answered; absent means the configured one. */
  model?: string | undefined;
  code: 'ok' | 'cancelled' | ProblemCode;
  providerError?: ProviderError | undefined;
}

/** The status and type of the provider's error in a failed attempt, and the place that it refused; never its text. */
export interface ProviderError {
  /** The HTTP status; absent where it answered nothing. */
  status?: number | undefined;
  /** The provider's or its SDK's name for the error, such as `invalid_request_error`. */
  type?: string | undefined;
  /** In the provider's words, such as `tools.0.custom.input_schema`, and never in the caller's. */
  place?: string | undefined;
}

/** A chat that has ended, without its texts. Durations are in milliseconds from `receivedAt`, unless they say so. */
export interface RecentRequest {
  /** Id of the chat, its `X-Request-Id`. */
  id: string;
  /** Name of the user. */
  user: string;
  /** The provider that the request names. */
  provider: ProviderId;
  /** The model that answered, in the provider's words, else the requested one, at most 200 characters of it. */
  model?: string | undefined;
  /** Whether the caller read the reply as it was written. */
  streamed: boolean;
  /** When its request came. */
  receivedAt: string;
  /** When its job was given to the queue; absent where it was refused before. */
  queuedMs?: number | undefined;
  /** When a worker began with it; absent where none did. */
  startedMs?: number | undefined;
  /** When the first piece of the reply came from the provider; only of what was streamed. */
  firstTokenMs?: number | undefined;
  endedMs: number;
  /** How long its jobs waited, and how long they were at the providers, in all. */
  queueMs?: number | undefined;
  providerMs?: number | undefined;
  code: RequestCode;
  /** In their order; none where it was refused before. */
  attempts: RequestAttempt[];
  /** Tokens of all attempts, as the providers counted them; absent where they did not. */
  inputTokens?: number | undefined;
  outputTokens?: number | undefined;
}

/** The recent past of several API processes. */
interface KnownByProcesses {
  at: string;
  /** API processes whose knowledge this is, that which answers included. */
  processes: number;
  /** Whether the others could not be asked, because the queue's store is down. */
  isPartial: boolean;
}

/** The last chats that ended. */
export interface RecentRequests extends KnownByProcesses {
  /** The last that ended first. */
  requests: RecentRequest[];
}

/** Five seconds of one provider. */
export interface Sample {
  provider: ProviderId;
  /** When they began. */
  at: string;
  /** Jobs that waited at their end, and that were at a worker; null while the queue's store did not say. */
  waiting: number | null;
  active: number | null;
  /** Jobs that ran at the workers at their end, and how many may run; null while no worker was heard of. */
  inFlight: number | null;
  concurrency: number | null;
  /** Chats that came, ended, and ended with a failure, at the API processes that are known. */
  arrivals: number;
  ended: number;
  failed: number;
  /**
   * How long the jobs of the ended chats waited, and were at the providers, in milliseconds; null without any. Over
   * several processes p50 is the mean, p95 the highest.
   */
  queueMs: { p50: number; p95: number } | null;
  providerMs: { p50: number; p95: number } | null;
}

/** Ten minutes of measurements. */
export interface Samples extends KnownByProcesses {
  /** Time from one sample of a provider to the next, in milliseconds. */
  everyMs: number;
  /** Oldest first, and in the usual order of providers. */
  samples: Sample[];
}

/** The chats of a provider that ended in the last five minutes while their callers waited, at all API processes. */
export interface FleetChats {
  ended: number;
  /** Chats that failed by the fault of the provider, by a breaker, or by overload, time-outs included. */
  failed: number;
  /** Code of the last that failed; absent when none did. */
  code?: string | undefined;
  /** The model of all that failed; absent when there are several, or it is not known. */
  model?: string | undefined;
}
