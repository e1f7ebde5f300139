import type { ProviderId } from './contract.js';

/**
 * The last ten minutes as operators see them, at `GET /admin/samples`. Plain interfaces: the OpenAPI document is
 * generated from them. Times are RFC 3339 in UTC.
 */

/** The status and type of the provider's error in a failed attempt, and the place that it refused; never its text. */
export interface ProviderError {
  /** The HTTP status; absent where it answered nothing. */
  status?: number | undefined;
  /** The provider's or its SDK's name for the error, such as `invalid_request_error`. */
  type?: string | undefined;
  /** In the provider's words, such as `tools.0.custom.input_schema`, and never in the caller's. */
  place?: string | undefined;
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
  /** Chats that ended in these five seconds, and those of them that failed; null while the database is away. */
  ended: number | null;
  failed: number | null;
  /** How long the jobs of the ended chats waited, and were at the providers, in milliseconds; null without any. */
  queueMs: { p50: number; p95: number } | null;
  providerMs: { p50: number; p95: number } | null;
}

/** Ten minutes of measurements. */
export interface Samples {
  at: string;
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
