import { providerIds } from '../contracts/contract.js';
import { failureCodes } from '../failures.js';
import { release } from '../runtime/release.js';

/** A metric, from which `docs/metrics.md` is generated. Labels have only these values, never one that a caller sent. */
export interface MetricDefinition {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  readonly labels: Readonly<Record<string, readonly string[]>>;
  /** Upper bounds of a histogram's buckets, in seconds. */
  readonly buckets?: readonly number[];
}

/** The metrics of one program. */
export type MetricTable = Readonly<Record<string, MetricDefinition>>;

const provider = providerIds;
/** The provider as the request names it; `none` when it names no known one. */
const wantedProvider = ['none', ...providerIds] as const;
const answerCode = ['ok', 'accepted', 'client_closed', ...failureCodes] as const;
const streamCode = ['ok', 'client_closed', ...failureCodes] as const;
/** Outcomes of a job and of a single call; any other end of a job counts as `internal`. */
export const workCodes = [
  'ok',
  'cancelled',
  'content_blocked',
  'context_length_exceeded',
  'invalid_request',
  'provider_error',
  'provider_rejected',
  'provider_rate_limited',
  'provider_timeout',
  'provider_unavailable',
  'timeout',
  'internal',
] as const;
/** The operators' setting `intake` of a provider; `open` without one. */
export const intakes = ['open', 'paused', 'draining'] as const;
const breakerState = ['closed', 'open', 'half-open'] as const;

/** Up to the longest deadline and the longest time-out that can be configured, an hour. */
const waitBuckets = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600,
];
const callBuckets = [0.05, 0.1, 0.25, 0.5, 1, 2, 3, 5, 8, 13, 20, 30, 45, 60, 120, 300, 600, 1800, 3600];

/** Exported by every process, so that a rollout can be watched. */
const buildInfo = {
  name: 'quillgate_build_info',
  type: 'gauge',
  help: 'Always 1; the label is the release that runs.',
  labels: { release: [release] },
} as const;

/** The metrics of an API process. The three of the queue are the same for all processes: take their `max`. */
export const apiMetrics = {
  buildInfo,
  queueUp: {
    name: 'quillgate_queue_up',
    type: 'gauge',
    help: 'Whether the queue store has just answered (1) or not (0); while it has not, quillgate_queue_jobs and quillgate_queue_oldest_waiting_seconds are absent.',
    labels: {},
  },
  queueJobs: {
    name: 'quillgate_queue_jobs',
    type: 'gauge',
    help: 'Jobs in the queue store: waiting for a worker, asynchronous ones too, or active at one.',
    labels: { provider, state: ['waiting', 'active'] },
  },
  oldestWaiting: {
    name: 'quillgate_queue_oldest_waiting_seconds',
    type: 'gauge',
    help: 'For how long the oldest waiting job has been waiting; 0 when none waits.',
    labels: { provider },
  },
  intake: {
    name: 'quillgate_intake',
    type: 'gauge',
    help: 'Whether operators have paused the pools of the provider, or drain them: 1 for what is set, 0 for the others. Every API process has the same: take their `max`.',
    labels: { provider, state: intakes },
  },
  failing: {
    name: 'quillgate_pool_failing',
    type: 'gauge',
    help: 'Is 1 while the pools of the provider take jobs, but of ten or more chats that ended in the last five minutes while their callers waited at least half failed by its fault, a breaker or overload; else 0. Every API process has the same: take their `max`.',
    labels: { provider },
  },
  chatRequests: {
    name: 'quillgate_chat_requests_total',
    type: 'counter',
    help: 'Answers to POST /chat and /v1/chat/completions by what became of the request: ok (200), accepted (202), client_closed (gone before the answer), or the code of the failure.',
    labels: { provider: wantedProvider, code: answerCode },
  },
  chatRequestsInFlight: {
    name: 'quillgate_chat_requests_in_flight',
    type: 'gauge',
    help: 'Requests to POST /chat and /v1/chat/completions that are not answered yet.',
    labels: { provider: wantedProvider },
  },
  streamsOpen: {
    name: 'quillgate_streams_open',
    type: 'gauge',
    help: 'Streams that clients are reading: of new chats, joined ones and those that are sent again.',
    labels: { provider: wantedProvider },
  },
  streams: {
    name: 'quillgate_streams_total',
    type: 'counter',
    help: 'Streams that have ended after they had begun: ok (done), client_closed, or the code of the error.',
    labels: { provider: wantedProvider, code: streamCode },
  },
  streamFirstEvent: {
    name: 'quillgate_stream_first_event_seconds',
    type: 'histogram',
    help: 'Time from a request to POST /chat or /v1/chat/completions to the first event of its stream; not of streams that are resumed or replayed.',
    labels: { provider: wantedProvider },
    buckets: waitBuckets,
  },
  cancels: {
    name: 'quillgate_cancels_total',
    type: 'counter',
    help: 'Jobs called off before they had ended: because the caller had gone or had been given up at SIGTERM (caller_gone), because the store had not answered in time and the request was refused (refused), or by DELETE, by an operator, or because a stored chat had been refused (asked).',
    labels: { provider, kind: ['caller_gone', 'refused', 'asked'] },
  },
  blogRequests: {
    name: 'quillgate_blog_requests_total',
    type: 'counter',
    help: 'Answers of the blog and its feeds: ok, client_closed, or the code of the failure.',
    labels: { code: answerCode },
  },
} as const satisfies MetricTable;

/** The metrics of a worker process, for each pool that it runs. */
export const workerMetrics = {
  buildInfo,
  jobs: {
    name: 'quillgate_jobs_total',
    type: 'counter',
    help: 'Jobs that ended at this worker: ok, cancelled, or the code of the failure.',
    labels: { provider, code: workCodes },
  },
  fallbacks: {
    name: 'quillgate_fallbacks_total',
    type: 'counter',
    help: 'Chats that this worker passed on to the next provider of their fallback, because their job had failed here.',
    labels: { provider, next: provider },
  },
  tokens: {
    name: 'quillgate_tokens_total',
    type: 'counter',
    help: 'Tokens that the provider counted: of conversations (input) and of replies (output), those of failed attempts included where it says.',
    labels: { provider, direction: ['input', 'output'] },
  },
  queueWait: {
    name: 'quillgate_queue_wait_seconds',
    type: 'histogram',
    help: 'Time from a request to the first call of its job, a hold of its model included, of jobs that made a call.',
    labels: { provider },
    buckets: waitBuckets,
  },
  callDuration: {
    name: 'quillgate_provider_call_duration_seconds',
    type: 'histogram',
    help: 'Time that one call of the provider took until its reply was complete, or it had failed or been cancelled.',
    labels: { provider },
    buckets: callBuckets,
  },
  firstDelta: {
    name: 'quillgate_provider_first_delta_seconds',
    type: 'histogram',
    help: 'Time from the beginning of a streamed call to the first delta of its reply.',
    labels: { provider },
    buckets: callBuckets,
  },
  calls: {
    name: 'quillgate_provider_calls_total',
    type: 'counter',
    help: 'Calls of the provider: the first for a job, or its retry, by how they ended. A 429 is provider_rate_limited.',
    labels: { provider, kind: ['first', 'retry'], code: workCodes },
  },
  inFlight: {
    name: 'quillgate_pool_in_flight',
    type: 'gauge',
    help: 'Jobs that this pool is working on.',
    labels: { provider },
  },
  concurrency: {
    name: 'quillgate_pool_concurrency',
    type: 'gauge',
    help: 'Jobs that this pool works on at once at most.',
    labels: { provider },
  },
  hold: {
    name: 'quillgate_pool_hold_seconds',
    type: 'gauge',
    help: 'How much longer this pool calls a model no more because the provider limits it, for the model that has to wait longest; 0 when none has.',
    labels: { provider },
  },
  breakerState: {
    name: 'quillgate_breaker_state',
    type: 'gauge',
    help: 'The worst state of the breakers of this pool, of the account or of a model: 1 for that one, 0 for the others.',
    labels: { provider, state: breakerState },
  },
  breakerChanges: {
    name: 'quillgate_breaker_changes_total',
    type: 'counter',
    help: 'How often a breaker of this pool, of the account or of a model, came into a state; a scrape can miss a short one.',
    labels: { provider, state: breakerState },
  },
} as const satisfies MetricTable;
