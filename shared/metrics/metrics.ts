import { providerIds } from '../contracts/contract.js';
import { failureCodes } from '../failures.js';
import { release } from '../runtime/program.js';

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
    help: 'Whether the queue store has just answered (1) or not (0). While it has not, the metrics from the store are absent.',
    labels: {},
  },
  queueJobs: {
    name: 'quillgate_queue_jobs',
    type: 'gauge',
    help: 'Jobs in the queue store that wait for a worker, asynchronous ones too, or are active at one.',
    labels: { provider, state: ['waiting', 'active'] },
  },
  oldestWaiting: {
    name: 'quillgate_queue_oldest_waiting_seconds',
    type: 'gauge',
    help: 'Time that the oldest waiting job has waited; 0 when none waits.',
    labels: { provider },
  },
  intake: {
    name: 'quillgate_intake',
    type: 'gauge',
    help: 'Whether operators have paused or drain the pools of the provider: 1 for what is set, 0 for the others.',
    labels: { provider, state: intakes },
  },
  failing: {
    name: 'quillgate_pool_failing',
    type: 'gauge',
    help: 'Is 1 while half or more of ten or more chats in five minutes failed by the provider, a breaker or overload; else 0.',
    labels: { provider },
  },
  chatRequests: {
    name: 'quillgate_chat_requests_total',
    type: 'counter',
    help: 'Answers to POST /chat and /v1/chat/completions: ok (200), accepted (202), client_closed (gone before the answer), or the code of the failure.',
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
    help: 'Streams that clients are reading, joined and repeated ones too.',
    labels: { provider: wantedProvider },
  },
  streams: {
    name: 'quillgate_streams_total',
    type: 'counter',
    help: 'Streams that had begun and have ended: ok (done), client_closed, or the code of the error.',
    labels: { provider: wantedProvider, code: streamCode },
  },
  streamFirstEvent: {
    name: 'quillgate_stream_first_event_seconds',
    type: 'histogram',
    help: 'Time from a request to the first event of its stream, unless it is resumed or replayed.',
    labels: { provider: wantedProvider },
    buckets: waitBuckets,
  },
  cancels: {
    name: 'quillgate_cancels_total',
    type: 'counter',
    help: 'Jobs called off before they had ended. The caller had gone, also at SIGTERM (caller_gone); the store had not answered in time (refused); a DELETE, an operator, or the refusal of a stored chat ended it (asked).',
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
    help: 'Chats that this worker passed on to the next provider of their fallback.',
    labels: { provider, next: provider },
  },
  tokens: {
    name: 'quillgate_tokens_total',
    type: 'counter',
    help: 'Tokens that the provider counted in conversations (input) and replies (output), also of failed attempts.',
    labels: { provider, direction: ['input', 'output'] },
  },
  queueWait: {
    name: 'quillgate_queue_wait_seconds',
    type: 'histogram',
    help: 'Time from a request to the first call of its job, with the holds of its model.',
    labels: { provider },
    buckets: waitBuckets,
  },
  callDuration: {
    name: 'quillgate_provider_call_duration_seconds',
    type: 'histogram',
    help: 'Time of one call of the provider until it ended in any way.',
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
    help: 'Calls of the provider by how they ended. A 429 is provider_rate_limited.',
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
    help: 'Time until this pool calls the model again that the provider limits for longest; 0 when it limits none.',
    labels: { provider },
  },
  breakerState: {
    name: 'quillgate_breaker_state',
    type: 'gauge',
    help: 'The worst state of the breakers of this pool, of the account or of a model: 1 for it, 0 for the others.',
    labels: { provider, state: breakerState },
  },
  breakerChanges: {
    name: 'quillgate_breaker_changes_total',
    type: 'counter',
    help: 'How often a breaker of this pool came into a state.',
    labels: { provider, state: breakerState },
  },
} as const satisfies MetricTable;
