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

const metricOf =
  <const Type extends MetricDefinition['type']>(type: Type) =>
  <const Labels extends MetricDefinition['labels']>(
    name: string,
    help: string,
    labels: Labels,
    buckets?: readonly number[],
  ) => ({ name, type, help, labels, ...(buckets && { buckets }) });
const counter = metricOf('counter');
const gauge = metricOf('gauge');
const histogram = metricOf('histogram');

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
const buildInfo = gauge('quillgate_build_info', 'Always 1; the label is the release that runs.', {
  release: [release],
});

const ledgerDropped = counter(
  'quillgate_ledger_dropped_total',
  'Entries that the ledger lacks: the outbox was full, or the store took none for ten seconds, or PostgreSQL refused one.',
  {},
);

/** The metrics of an API process. The three of the queue are the same for all processes: take their `max`. */
export const apiMetrics = {
  buildInfo,
  queueUp: gauge(
    'quillgate_queue_up',
    'Whether the queue store has just answered (1) or not (0). While it has not, the metrics from the store are absent.',
    {},
  ),
  queueJobs: gauge(
    'quillgate_queue_jobs',
    'Jobs in the queue store that wait for a worker, asynchronous ones too, or are active at one.',
    { provider, state: ['waiting', 'active'] },
  ),
  oldestWaiting: gauge(
    'quillgate_queue_oldest_waiting_seconds',
    'Time that the oldest waiting job has waited; 0 when none waits.',
    { provider },
  ),
  intake: gauge(
    'quillgate_intake',
    'Whether operators have paused or drain the pools of the provider: 1 for what is set, 0 for the others.',
    { provider, state: intakes },
  ),
  failing: gauge(
    'quillgate_pool_failing',
    'Is 1 while half or more of ten or more chats in five minutes failed by the provider, a breaker or overload; else 0.',
    { provider },
  ),
  chatRequests: counter(
    'quillgate_chat_requests_total',
    'Answers to POST /chat and /v1/chat/completions: ok (200), accepted (202), client_closed (gone before the answer), or the code of the failure.',
    { provider: wantedProvider, code: answerCode },
  ),
  chatRequestsInFlight: gauge(
    'quillgate_chat_requests_in_flight',
    'Requests to POST /chat and /v1/chat/completions that are not answered yet.',
    { provider: wantedProvider },
  ),
  streamsOpen: gauge(
    'quillgate_streams_open',
    'Streams that clients are reading, joined and repeated ones too.',
    { provider: wantedProvider },
  ),
  streams: counter(
    'quillgate_streams_total',
    'Streams that had begun and have ended: ok (done), client_closed, or the code of the error.',
    { provider: wantedProvider, code: streamCode },
  ),
  streamFirstEvent: histogram(
    'quillgate_stream_first_event_seconds',
    'Time from a request to the first event of its stream, unless it is resumed or replayed.',
    { provider: wantedProvider },
    waitBuckets,
  ),
  cancels: counter(
    'quillgate_cancels_total',
    'Jobs called off before they had ended. The caller had gone, also at SIGTERM (caller_gone); the store had not answered in time (refused); a DELETE, an operator, or the refusal of a stored chat ended it (asked).',
    { provider, kind: ['caller_gone', 'refused', 'asked'] },
  ),
  ledgerDropped,
  outboxEntries: gauge(
    'quillgate_ledger_outbox_entries',
    'Entries of the ledger in the queue store that are not in PostgreSQL yet; more than 100,000 are refused.',
    {},
  ),
  outboxAge: gauge(
    'quillgate_ledger_outbox_oldest_seconds',
    'Time that the oldest entry of the ledger has waited for PostgreSQL; 0 when none waits.',
    {},
  ),
  cost: counter(
    'quillgate_cost_dollars_total',
    'Cost of the calls that this process has written to the ledger, in dollars, without those of unknown prices.',
    { provider },
  ),
  blogRequests: counter(
    'quillgate_blog_requests_total',
    'Answers of the blog and its feeds: ok, client_closed, or the code of the failure.',
    { code: answerCode },
  ),
} as const satisfies MetricTable;

/** The metrics of a worker process, for each pool that it runs. */
export const workerMetrics = {
  buildInfo,
  ledgerDropped,
  jobs: counter(
    'quillgate_jobs_total',
    'Jobs that ended at this worker: ok, cancelled, or the code of the failure.',
    { provider, code: workCodes },
  ),
  fallbacks: counter(
    'quillgate_fallbacks_total',
    'Chats that this worker passed on to the next provider of their fallback.',
    { provider, next: provider },
  ),
  tokens: counter(
    'quillgate_tokens_total',
    'Tokens of conversations (input) and replies (output) in all calls, estimated where the provider did not count.',
    { provider, direction: ['input', 'output'] },
  ),
  queueWait: histogram(
    'quillgate_queue_wait_seconds',
    'Time from a request to the first call of its job, with the holds of its model.',
    { provider },
    waitBuckets,
  ),
  callDuration: histogram(
    'quillgate_provider_call_duration_seconds',
    'Time of one call of the provider until it ended in any way.',
    { provider },
    callBuckets,
  ),
  firstDelta: histogram(
    'quillgate_provider_first_delta_seconds',
    'Time from the beginning of a streamed call to the first delta of its reply.',
    { provider },
    callBuckets,
  ),
  calls: counter(
    'quillgate_provider_calls_total',
    'Calls of the provider by how they ended. A 429 is provider_rate_limited.',
    { provider, kind: ['first', 'retry'], code: workCodes },
  ),
  inFlight: gauge('quillgate_pool_in_flight', 'Jobs that this pool is working on.', { provider }),
  concurrency: gauge('quillgate_pool_concurrency', 'Jobs that this pool works on at once at most.', {
    provider,
  }),
  hold: gauge(
    'quillgate_pool_hold_seconds',
    'Time until this pool calls the model again that the provider limits for longest; 0 when it limits none.',
    { provider },
  ),
  breakerState: gauge(
    'quillgate_breaker_state',
    'The worst state of the breakers of this pool, of the account or of a model: 1 for it, 0 for the others.',
    { provider, state: breakerState },
  ),
  breakerChanges: counter(
    'quillgate_breaker_changes_total',
    'How often a breaker of this pool came into a state.',
    { provider, state: breakerState },
  ),
} as const satisfies MetricTable;
