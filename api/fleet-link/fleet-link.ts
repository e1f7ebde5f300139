import type { Queue } from 'bullmq';
import type { ProviderId } from '../../shared/contracts/contract.js';
import { Failure } from '../../shared/failures.js';
import type { FleetSource } from '../../shared/fleet/fleet-state.js';
import { Heartbeats } from '../../shared/fleet/heartbeats.js';
import { LivePools } from '../../shared/fleet/live-pools.js';
import { encodeOrigin } from '../../shared/protocol/entries.js';
import {
  type ChatJobPayload,
  encodeWrittenJob,
  type ResultMessage,
  topics,
} from '../../shared/protocol/messages.js';
import { cancelledOutcome, encodeOutcome } from '../../shared/protocol/outcome.js';
import type { Resend } from '../../shared/protocol/parts.js';
import { writtenVersion } from '../../shared/protocol/version.js';
import { addJob, priorityOf, startSend } from '../../shared/queue/add-attempt.js';
import { closeChannels, queueOf } from '../../shared/queue/channels.js';
import { type QueueDepth, whenReady } from '../../shared/queue/queue-store.js';
import type { Relay } from '../../shared/queue/relay.js';
import type { SettingsChannel } from '../../shared/queue/settings-records.js';
import { LagFreeClock } from '../../shared/runtime/lag-free-clock.js';
import { retry, retryBriefly, storeTimeoutMs, withTimeout } from '../../shared/runtime/retry.js';
import type { TraceSpan } from '../../shared/runtime/tracing.js';
import type { ChatReceiver, JobResult, NewJob, PendingJob, PolledChat } from './chat-receiver.js';
import { type Connection, type LinkDeps, openConnection } from './connection.js';
import { decodeResult, orUnavailable } from './job-records.js';

type Prepare = (channel: SettingsChannel) => Promise<void>;

/** The longest pause between two tries to connect. */
const maxPauseMs = 8000;
/** The longest wait, when closing, for a store that accepts no cancels. */
const closeTimeoutMs = 1000;

/**
 * This API process's end of the queue and the relay, from the start of the process to its end. It adds jobs, reads
 * their records, and receives results and heartbeats.
 * 1. `connecting`: the store was not reached yet. No worker is known, and no job can have been added here.
 * 2. `connected`: all of it works, or fails because the store is down.
 * 3. `stopped`: `close` was called. Cancels still go out until it resolves.
 *
 * Unless it is connected, a method that needs the queue throws `queue_unavailable`. Before that, one that cancels a job
 * or asks for text does nothing. Heartbeats and pools can be read at any time.
 */
export class FleetLink implements FleetSource {
  /** For heartbeats, whose ages must not grow when this process is late. */
  readonly #clock = new LagFreeClock();
  readonly heartbeats = new Heartbeats({ now: this.#clock.now, since: Number.POSITIVE_INFINITY });
  readonly pools = new LivePools(this.heartbeats);
  readonly #deps: Required<LinkDeps>;
  readonly #stopping = new AbortController();
  #started = Promise.resolve(false);
  #opened: Connection | undefined;

  constructor(deps: LinkDeps) {
    this.#deps = { withTimeout, ...deps };
  }

  get isConnected(): boolean {
    return this.#opened !== undefined && !this.#stopping.signal.aborted;
  }

  /**
   * Connects for the chats of this process as soon as the store allows it. `prepare` runs before the link counts as
   * connected, and must not reject. Resolves to false when the link is closed first.
   */
  start(chats: ChatReceiver, prepare?: Prepare): Promise<boolean> {
    this.#started = this.#connect(chats, prepare);
    return this.#started;
  }

  /** Throws `queue_unavailable` unless it is connected. */
  assertConnected(): void {
    this.#connected();
  }

  /** Throws `queue_unavailable` when the store cannot be used. */
  async check(): Promise<void> {
    this.assertConnected();
    await this.#deps.store.check().catch((cause) => this.#refuse(cause));
  }

  /** Adds the job under this id; throws `queue_unavailable` within three seconds when the store is down. */
  async add(jobId: string, { isAsync = false, level = 0, trace, origin, ...job }: NewJob): Promise<void> {
    const { queues, relay } = this.#connected();
    const span = trace && startSend(trace, { ...job, id: jobId });
    const traced = span && { traceparent: span.traceparent };
    const payload = encodeWrittenJob({ ...job, ...traced, replyTo: relay.nodeId });
    const name = encodeOrigin(origin);
    const newJob = { jobId, name, payload, priority: priorityOf(level, { isAsync }) };
    const add = () => addJob(queueOf(queues, job.provider), this.#deps.store, newJob);
    // If the store takes the job later, the deadline bounds that.
    await this.#bounded(retry(add, retryBriefly), span);
    span?.end();
  }

  /** See `JobRecords.read`; throws `queue_unavailable` within three seconds when the store does not answer. */
  async read(job: PendingJob): Promise<JobResult> {
    return orUnavailable(this.#connected().jobRecords.read(job));
  }

  /** See `JobRecords.describe`; throws `queue_unavailable` within three seconds when the store does not answer. */
  async describe(jobId: string) {
    return this.#bounded(this.#connected().jobRecords.describe(jobId));
  }

  /** How much there is to do for the provider; throws while the store cannot be reached. */
  async measure(provider: ProviderId): Promise<QueueDepth> {
    return this.#deps.store.measure(this.queueOf(provider));
  }

  /** See `Cancellation.cancel`; the outcome of a stored chat must say so already. */
  cancel(job: PendingJob): void {
    this.#opened?.cancellation.cancel(job);
  }

  /** As `cancel`, for a job whose add was not confirmed: the store may still execute it. */
  cancelUnconfirmed(job: PendingJob): void {
    this.#opened?.cancellation.cancelUnconfirmed(job);
  }

  /**
   * Ends a chat that is not stored for all who wait for it, at any API process, once `audit` has recorded it, and then
   * cancels its job: one that still waits adds a missing job again. Throws `not_found` and `queue_unavailable`.
   */
  async end(jobId: string, audit: (user: string) => Promise<void>): Promise<void> {
    const { chats, jobRecords, relay, cancellation } = this.#connected();
    const job = await this.#bounded(jobRecords.find(jobId));
    if (job === undefined) throw new Failure('not_found');
    await audit(job.user);
    const settled = [{ jobId, outcome: encodeOutcome(cancelledOutcome) }];
    await this.#bounded(relay.publish(topics.storedResult, { v: writtenVersion, settled }));
    chats.onOutcome(jobId, cancelledOutcome);
    // Read first, as the job of a stored chat is, because it may have ended.
    cancellation.cancel({ ...job, isStored: true });
  }

  /** Asks the job's worker for a part of its text. The reader repeats a request that is lost. Never throws. */
  requestResend(job: PendingJob, place: Pick<Resend, 'reader' | 'from' | 'max' | 'left'>): void {
    if (this.#opened === undefined) return;
    const { relay } = this.#opened;
    const { jobId, provider, fallback = [] } = job;
    const message: Resend = { v: writtenVersion, jobId, api: relay.nodeId, ...place };
    // A reader who leaves may be the last who knew where the chat has been passed on to.
    const others = place.left ? fallback.map((target) => target.provider) : [];
    for (const asked of new Set([provider, ...others]))
      relay
        .publish(topics.resend(asked), message)
        .catch((err) => this.#deps.log.debug({ err, jobId }, 'resend not requested'));
  }

  get relay(): Relay {
    return this.#connected().relay;
  }

  get settingsChannel(): SettingsChannel {
    return this.#connected().settingsChannel;
  }

  queueOf(provider: ProviderId): Queue<ChatJobPayload> {
    return queueOf(this.#connected().queues, provider);
  }

  /** Waits for cancels that are under way, for a second at most. */
  async close(): Promise<void> {
    this.#stopping.abort();
    await this.#started.catch(() => false);
    this.#clock.close();
    if (this.#opened === undefined) return;
    this.#opened.poller.stop();
    await withTimeout(closeTimeoutMs, this.#opened.cancellation.flush()).catch(() => undefined);
    await closeChannels(this.#opened);
  }

  async #connect(chats: ChatReceiver, prepare?: Prepare): Promise<boolean> {
    const { heartbeats, pools } = this;
    const { store, log } = this.#deps;
    const { signal } = this.#stopping;
    const onResults = (message: ResultMessage) => this.#receive(message, chats);
    const open = () => openConnection({ ...this.#deps, heartbeats, pools, chats, onResults });
    const opened = await whenReady(open, { store, log, signal, maxPauseMs }).catch((error) => {
      if (!signal.aborted) throw error;
      return undefined;
    });
    if (opened === undefined) return false;
    await prepare?.(opened.settingsChannel);
    this.#opened = opened;
    return this.isConnected;
  }

  /** A message without an outcome says that there is one to be read. */
  #receive({ settled }: ResultMessage, chats: ChatReceiver): void {
    const unread: PolledChat[] = [];
    for (const { jobId, outcome } of settled) {
      const chat = chats.find(jobId);
      if (outcome) chats.onOutcome(jobId, decodeResult(outcome));
      else if (chat) unread.push(chat);
    }
    if (unread.length > 0) void this.#opened?.poller.poll(unread);
  }

  #connected(): Connection {
    if (this.#opened === undefined || !this.isConnected) throw new Failure('queue_unavailable');
    return this.#opened;
  }

  #bounded<T>(work: Promise<T>, span?: TraceSpan): Promise<T> {
    return this.#deps.withTimeout(storeTimeoutMs, work).catch((cause) => this.#refuse(cause, span));
  }

  #refuse(cause: unknown, span?: TraceSpan): never {
    span?.end({ error: 'queue_unavailable' });
    this.heartbeats.recordOutage();
    throw new Failure('queue_unavailable', { cause });
  }
}
