import type { ProviderId } from './contract.js';
import type { FleetChats } from './history.js';

/**
 * The fleet as operators see it, at `GET /admin/pools` and in the command line. Plain interfaces: the OpenAPI
 * document is generated from them. Times are RFC 3339 in UTC; they stay as they are while nothing happens.
 */

/** The queue's store, as this API process reaches it. */
export interface FleetQueue {
  /** Where the queue lives. */
  store: 'redis' | 'postgres';
  status: 'ok' | 'failing';
  /** Why it is failing. */
  detail?: string;
}

/** A model to which the worker limits its calls, for all or one user; `model` is null for the account: every model. */
export interface FleetBreaker {
  model: string | null;
  /** `limited` by the provider's 429 (a hold); `half-open` takes one call at a time. */
  state: 'open' | 'half-open' | 'limited';
  /** Code of the failures that opened it; of the account `credentials`, `credit`, `unreachable` or `operator`. */
  reason?: string | undefined;
  /** Id of the only user whose calls it refuses or holds back; absent if it concerns all calls. */
  user?: string | undefined;
  /** When the next call may be made. */
  nextProbeAt?: string | undefined;
  /** Since when it has this state, as far as the answering process knows. A `half-open` one has had no call since. */
  since?: string | undefined;
}

/** How the calls of a worker's last minute went; only the latest 500 count. */
export interface FleetCalls {
  count: number;
  /** Share of those that failed by the provider's fault, from 0 to 1. */
  errorRate: number;
  /** Share of those that the provider answered with 429. */
  rateLimitRate: number;
  /** How long the calls took that gave a reply, in milliseconds. */
  latencyMs?: { p50: number; p95: number } | undefined;
}

/** The last call of a worker that failed. */
export interface FleetError {
  code: string;
  at: string;
  /** When calls began to fail with this code, without another result in between. */
  since: string;
}

/** How the chats of a failing provider fail. */
export interface FleetFailing {
  /** Code of the last failure. */
  code: string;
  /** Since when the provider is failing, as far as the answering process knows. */
  since: string;
}

/** A pool: the worker of one provider in one process. */
export interface FleetWorker {
  /** Unique among all processes, and the same for the pools of one. */
  worker: string;
  /** `paused` takes no jobs; `probing` one at a time; `silent` sent nothing for two seconds: the rest is its last. */
  state: 'serving' | 'probing' | 'paused' | 'silent';
  /** Since when it is silent. */
  silentSince?: string | undefined;
  /** Why it is paused, if not by the account's breaker: `operator`, or `clock`, which differs from the store's. */
  pausedBy?: string | undefined;
  /** Jobs at once. */
  concurrency: number;
  /** Jobs that run. */
  inFlight: number;
  /** When the oldest of them began. */
  oldestJobSince?: string | undefined;
  /** Moving mean of the time that one job takes, in milliseconds; 0 before the first. */
  meanJobMs: number;
  /** For requests that name no model. */
  defaultModel?: string | undefined;
  /** Other models that callers may name, with `*` for any characters; any plain name where it is absent. */
  models?: string[] | undefined;
  breakers: FleetBreaker[];
  /** Absent when there were none. */
  calls?: FleetCalls | undefined;
  lastError?: FleetError | undefined;
  /** Whether the simulator plays the provider. */
  simulated: boolean;
  /** By which settings of the operators it works; 0 without any. */
  settingsVersion: number;
  release: string;
  host: string;
}

/** How much there is to do. */
export interface FleetDepth {
  /** Jobs that wait for a worker. */
  waiting: number;
  /** Jobs at a worker. */
  active: number;
  /** When the oldest that waits was added. */
  oldestSince?: string;
}

/** A provider and its workers. */
export interface FleetProvider {
  provider: ProviderId;
  /**
   * `serving`, `probing` or `paused` as the best of its workers; `silent` when none of those that were there has been
   * heard of; `absent` when there is none; `unknown` while none can have been heard of.
   */
  state: 'serving' | 'probing' | 'paused' | 'silent' | 'absent' | 'unknown';
  /** Present while workers take jobs, but of ten or more `chats` at least half failed. `state` stays what it is. */
  failing?: FleetFailing;
  /** Absent when none has ended. */
  chats?: FleetChats;
  /** Whether its workers call the provider or the simulator; `unknown` where no worker says so. */
  kind: 'real' | 'simulated' | 'mixed' | 'unknown';
  /** Jobs at once, over all workers but silent ones. */
  concurrency: number;
  /** Jobs that run there. */
  inFlight: number;
  /** Absent while the queue's store does not say. */
  queue?: FleetDepth;
  /** By name. */
  workers: FleetWorker[];
}

/** The fleet as one API process knows it. */
export interface Fleet {
  at: string;
  /** The release of the API process. */
  release: string;
  queue: FleetQueue;
  providers: FleetProvider[];
}

/**
 * Body of `PUT /admin/pools/{provider}`: all that shall replace the environment. What is absent is as the environment
 * says; `{}` resets everything.
 */
export interface PoolSettingsInput {
  /** Jobs at once in each worker process. */
  concurrency?: number;
  /** Jobs at once over all worker processes. */
  globalConcurrency?: number;
  /** Jobs that all workers together may begin within so many milliseconds. */
  rate?: { max: number; durationMs: number };
  /** `paused` begins no jobs; `draining` takes no new chats and finishes what is queued. */
  intake?: 'paused' | 'draining';
  /** Holds the breaker of the account open, or all breakers closed. */
  breaker?: 'open' | 'closed';
  /** Longest call, or of a stream the longest wait for its first delta, in milliseconds. */
  timeoutMs?: number;
  /** Longest wait for the first sign of life of a stream, in milliseconds. */
  firstTokenTimeoutMs?: number;
  /** Longest silence in a stream, in milliseconds; before its first delta the longer of this and the time above. */
  idleTimeoutMs?: number;
  /** How long a stream with a fallback may take to begin, in milliseconds; then the next provider is asked. */
  fallbackAfterMs?: number;
  /** Model for requests that name none. */
  model?: string;
  /** Other models that callers may name, with `*` for any characters. */
  models?: string[];
  /** The fallback for requests that name none; no provider when it is empty. */
  fallback?: { provider: ProviderId; model?: string }[];
}

/** A setting in force. */
export interface PoolSetting {
  name: string;
  /** The value in the form of `PoolSettingsInput`; null where nothing is set. */
  value: unknown;
  /**
   * The default, what the environment of the workers sets (for `fallback`, and while no worker says so, that of this
   * API process), or what operators have set.
   */
  source: 'default' | 'environment' | 'override';
}

/** The bound on the jobs at once of a provider. */
export interface ConcurrencyBound {
  /** The sum of its live workers. */
  workers: number;
  /** The bound for all workers together, if there is one. */
  global?: number;
  /** The lower one. */
  boundBy: 'workers' | 'global';
}

/** How many workers of a provider there are, and how many of them work by these settings. */
export interface SettingsReach {
  live: number;
  current: number;
}

/**
 * How many jobs at once the last five minutes have asked for, by Little's law: arrivals per second times mean time of a
 * job, and 30 % more. Jobs that ended at a worker that has stopped since are not counted.
 */
export interface ConcurrencySuggestion {
  /** Over all workers. */
  concurrency: number;
  /** For each of the live workers, as the setting `concurrency` has it. */
  perWorker: number;
  /** Jobs that ended, and by how many more or fewer are waiting now. */
  arrivalsPerSecond: number;
  /** How long a job took, from its first call on; p50 is the mean of the workers', p99 the highest of them. */
  meanMs: number;
  p50Ms: number;
  p99Ms: number;
  /** Jobs that ended, 30 or more. */
  jobs: number;
  /** Within this time, in milliseconds. */
  overMs: number;
}

/** The settings of a provider's pools. */
export interface PoolSettings {
  provider: ProviderId;
  /** Grows with each change; 0 when nothing was ever set. */
  version: number;
  /** Absent when nothing was ever set. */
  changedAt?: string;
  /** The user whose token it was, or the account and machine of the command line. */
  changedBy?: string;
  settings: PoolSetting[];
  concurrency: ConcurrencyBound;
  workers: SettingsReach;
  /** Absent when fewer than 30 jobs have ended in the last five minutes, and while no live worker says how many. */
  suggestion?: ConcurrencySuggestion;
  /** True when the queue's store did not take the change; the API copies it as soon as it does. */
  isPending?: boolean;
}

/** `waiting` with a priority or without. A job that failed for good is `failed`; a failed chat is `completed`. */
export type PoolJobState = 'active' | 'waiting' | 'delayed' | 'failed' | 'completed';

/** A job of a provider's queue, without its texts. */
export interface PoolJob {
  /** Id of the chat, with the number of the attempt from the second one on. */
  id: string;
  state: PoolJobState;
  addedAt: string;
  /** When a worker took it last; null if none has. */
  startedAt: string | null;
  endedAt: string | null;
  /** How often a worker has taken it: more than once if a worker died or handed it back. */
  attempts: number;
  /** From 1, among those that wait; null for others. */
  place: number | null;
  /** Name of its user, or the id where no name is known. Null, as what follows, if an older release added the job. */
  user: string | null;
  /** The model that the request named; null if none. */
  model: string | null;
  /** The API that was asked. */
  api: string | null;
  /** When the time for an answer is over. */
  deadline: string | null;
}

/** One page of jobs. */
export interface PoolJobPage {
  data: PoolJob[];
  /** The next `offset`; null at the end, and after 10,000 jobs. */
  next: string | null;
}
