import type { Queue } from 'bullmq';
import type { ProviderId } from '../../shared/contract.js';
import { Failure } from '../../shared/failures.js';
import { Heartbeats } from '../../shared/fleet/heartbeats.js';
import { LivePools } from '../../shared/fleet/live-pools.js';
import type { ApiInstruments } from '../../shared/metrics/instruments.js';
import { deltasSchema, type Resend } from '../../shared/protocol/deltas.js';
import {
  type ChatJobPayload,
  encodeChatJob,
  type ResultMessage,
  resultMessageSchema,
  topics,
} from '../../shared/protocol/messages.js';
import { cancelledOutcome, encodeOutcome } from '../../shared/protocol/outcome.js';
import { writtenVersion } from '../../shared/protocol/version.js';
import { addJob, retryBriefly } from '../../shared/queue/add-attempt.js';
import {
  type Channels,
  closeChannels,
  followProcesses,
  openChannels,
  queueOf,
} from '../../shared/queue/channels.js';
import { startSend } from '../../shared/queue/job-spans.js';
import { priorityOf } from '../../shared/queue/priority.js';
import type { QueueDepth, QueueStore } from '../../shared/queue/queue-store.js';
import type { Relay } from '../../shared/queue/relay.js';
import { type SettingsChannel, syncLimits } from '../../shared/queue/settings-records.js';
import { LagFreeClock } from '../../shared/runtime/lag-free-clock.js';
import type { Log } from '../../shared/runtime/log.js';
import { retry } from '../../shared/runtime/retry.js';
import type { TraceSpan } from '../../shared/runtime/tracing.js';
import { storeTimeoutMs, withTimeout } from '../../shared/runtime/with-timeout.js';
import { Cancellation } from './cancellation.js';
import type { ChatReceiver, JobResult, NewJob, PendingJob, PolledChat } from './chat-receiver.js';
import { DeadQueues } from './dead-queues.js';
import { decodeResult, JobRecords } from './job-records.js';
import { ResultPoller } from './result-poller.js';

interface JobClientDeps {
  store: QueueStore;
  /** The owner of the chats whose jobs are added here. */
  chats: ChatReceiver;
  metrics: Pick<ApiInstruments['metrics'], 'cancels'>;
  log: Log;
  /** Bounds how long the store may take to answer. */
  withTimeout?: typeof withTimeout;
}

/** The longest wait, when closing, for a store that accepts no cancels. */
const closeTimeoutMs = 1000;

/** This API process's end of the queue: it adds jobs, reads their records, and receives results and heartbeats. */
export class JobClient {
  /** For heartbeats, whose ages must not grow when this process is late. */
  readonly #clock = new LagFreeClock();
  readonly heartbeats = new Heartbeats({ now: this.#clock.now });
  readonly pools = new LivePools(this.heartbeats);
  readonly #store: QueueStore;
  readonly #withTimeout: typeof withTimeout;
  readonly #chats: ChatReceiver;
  readonly #channels: Channels;
  readonly #records: JobRecords;
  readonly #poller: ResultPoller;
  readonly #cancellation: Cancellation;
  readonly #log: Log;
  /** Where workers send the results of the jobs that are added here, as long as the relay knows this process. */
  readonly #replyTo: string;

  private constructor(deps: JobClientDeps, channels: Channels) {
    const { store, chats, metrics, log, withTimeout: bounded = withTimeout } = deps;
    this.#store = store;
    this.#withTimeout = bounded;
    this.#chats = chats;
    this.#channels = channels;
    this.#replyTo = channels.relay.nodeId;
    this.#log = log;
    const queueOf = (provider: ProviderId) => this.queueOf(provider);
    const parts = { queueOf, store, chats, log };
    this.#records = new JobRecords({ ...parts, withTimeout: bounded });
    const deadQueues = new DeadQueues({ ...parts, pools: this.pools });
    this.#poller = new ResultPoller({ ...parts, jobRecords: this.#records, deadQueues });
    this.#cancellation = new Cancellation({ queueOf, store, relay: channels.relay, metrics, log });
  }

  /** Opens the queues and the relay; the store must be ready. Throws the store's errors; leaves nothing open then. */
  static async open(deps: JobClientDeps): Promise<JobClient> {
    const client = new JobClient(deps, await openChannels(deps.store, { name: 'api', log: deps.log }));
    try {
      await client.#subscribe();
    } catch (error) {
      await client.close();
      throw error;
    }
    client.#poller.start();
    return client;
  }

  /** Throws `queue_unavailable` when the store cannot be used. */
  async check(): Promise<void> {
    await this.#store.check().catch((cause) => this.#refuse(cause));
  }

  /** Adds the job under this id; throws `queue_unavailable` within three seconds when the store is down. */
  async add(jobId: string, { isAsync = false, level = 0, trace, ...job }: NewJob): Promise<void> {
    const span = trace && startSend(trace, { ...job, id: jobId });
    const traced = span && { traceparent: span.traceparent };
    const payload = encodeChatJob({ v: writtenVersion, ...job, ...traced, replyTo: this.#replyTo });
    const newJob = { jobId, payload, priority: priorityOf(level, { isAsync }) };
    const adding = retry(() => addJob(this.queueOf(job.provider), this.#store, newJob), retryBriefly);
    // If the store takes the job later, the deadline bounds that.
    await this.#withTimeout(storeTimeoutMs, adding).catch((cause) => this.#refuse(cause, span));
    span?.end();
  }

  /** The job's state in the records; throws within three seconds when the store does not answer. */
  read(job: PendingJob): Promise<JobResult> {
    return this.#records.read(job);
  }

  /** How much there is to do for the provider; throws while the store cannot be reached. */
  measure(provider: ProviderId): Promise<QueueDepth> {
    return this.#store.measure(this.queueOf(provider));
  }

  /** See `Cancellation.cancel`; the outcome of a stored chat must say so already. */
  cancel(job: PendingJob): void {
    this.#cancellation.cancel(job);
  }

  /** As `cancel`, for a job whose add was not confirmed: the store may still execute it. */
  cancelUnconfirmed(job: PendingJob): void {
    this.#cancellation.cancelUnconfirmed(job);
  }

  /**
   * Ends a chat that is not stored for all who wait for it, at any API process, once `audit` has recorded it, and then
   * cancels its job: a process that still waits adds a job that is missing again. Throws `not_found`, and
   * `queue_unavailable`.
   */
  async end(jobId: string, audit: (user: string) => Promise<void>): Promise<void> {
    const bounded = <T>(work: Promise<T>) =>
      this.#withTimeout(storeTimeoutMs, work).catch((cause) => this.#refuse(cause));
    const job = await bounded(this.#records.find(jobId));
    if (job === undefined) throw new Failure('not_found');
    await audit(job.user);
    const settled = [{ jobId, outcome: encodeOutcome(cancelledOutcome) }];
    await bounded(this.#channels.relay.publish(topics.storedResult, { v: writtenVersion, settled }));
    this.#chats.onOutcome(jobId, cancelledOutcome);
    // As that of a stored chat: it is read before, because it may have ended.
    this.#cancellation.cancel({ ...job, isStored: true });
  }

  get relay(): Relay {
    return this.#channels.relay;
  }

  get settingsChannel(): SettingsChannel {
    return {
      records: this.#store.records,
      syncLimits: (id) => syncLimits(this.#store, this.queueOf(id), id),
      publish: (record) => this.#channels.relay.publish(topics.settings(record.provider), record),
    };
  }

  async close(): Promise<void> {
    this.#clock.close();
    this.#poller.stop();
    await withTimeout(closeTimeoutMs, this.#cancellation.flush()).catch(() => undefined);
    await closeChannels(this.#channels);
  }

  async #subscribe(): Promise<void> {
    const { relay } = this.#channels;
    const onResult = (message: ResultMessage) => this.#onResult(message);
    await followProcesses(relay, this.heartbeats);
    await this.pools.settings.follow(relay);
    await relay.receive(topics.reply(this.#replyTo), resultMessageSchema, onResult);
    await relay.subscribe(topics.storedResult, resultMessageSchema, onResult);
    await relay.receive(topics.deltas(this.#replyTo), deltasSchema, ({ deltas }) => {
      for (const delta of deltas) this.#chats.onDelta(delta);
    });
  }

  /** A message without an outcome says that there is one to be read. */
  #onResult({ settled }: ResultMessage): void {
    const unread: PolledChat[] = [];
    for (const { jobId, outcome } of settled) {
      const chat = this.#chats.find(jobId);
      if (outcome) this.#chats.onOutcome(jobId, decodeResult(outcome));
      else if (chat) unread.push(chat);
    }
    if (unread.length > 0) void this.#poller.poll(unread);
  }

  /** Asks the job's worker for a part of its text. The reader repeats a request that is lost. Never throws. */
  requestResend(job: PendingJob, place: Pick<Resend, 'reader' | 'from' | 'max' | 'left'>): void {
    const { jobId, provider, fallback = [] } = job;
    const message: Resend = { v: writtenVersion, jobId, api: this.#replyTo, ...place };
    // A reader who leaves may be the last who knew where the chat has been passed on to.
    const others = place.left ? fallback.map((target) => target.provider) : [];
    for (const asked of new Set([provider, ...others]))
      this.#channels.relay
        .publish(topics.resend(asked), message)
        .catch((err) => this.#log.debug({ err, jobId }, 'resend not requested'));
  }

  queueOf(provider: ProviderId): Queue<ChatJobPayload> {
    return queueOf(this.#channels.queues, provider);
  }

  #refuse(cause: unknown, span?: TraceSpan): never {
    span?.end({ error: 'queue_unavailable' });
    this.heartbeats.recordOutage();
    throw new Failure('queue_unavailable', { cause });
  }
}
