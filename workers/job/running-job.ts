import { z } from 'zod';
import type { ProviderId } from '../../shared/contracts/contract.js';
import { isObject } from '../../shared/json/json.js';
import type { MeteredRow } from '../../shared/protocol/entries.js';
import { LockLost } from '../gate/gated-call.js';
import type { CallProgress } from './call.js';
import type { DeltaStream } from './delta-stream.js';
import type { JobTrace } from './job-trace.js';
import type { JobEnd, Timings } from './outcomes.js';

/** The part of BullMQ's job that is read. */
export interface QueuedJob {
  readonly id?: string | undefined;
  /** See `encodeOrigin`. */
  readonly name: string;
  /** When it was added, in milliseconds since the epoch. */
  readonly timestamp: number;
  /** 0 is the most urgent. */
  readonly priority?: number;
  /** How often a worker has taken it. */
  readonly attemptsStarted: number;
  /** How often a worker that had taken it died, or lost its lock. */
  readonly stalledCounter: number;
  /** Set for a job that is given up. */
  readonly deferredFailure?: string | undefined;
  readonly data: unknown;
}

/** Hears what becomes of the jobs of a pool. */
export interface JobListener {
  taken?(job: RunningJob): void;
  /** Its first call is about to begin. */
  begun?(job: RunningJob): void;
  /** It has ended, or goes on elsewhere: then there is no `end`, and `error` says why. */
  ended?(job: RunningJob, end: JobEnd | undefined, error?: unknown): void;
}

interface RunningJobOptions extends Pick<RunningJob, 'provider' | 'queued' | 'token' | 'now'> {
  listeners?: readonly JobListener[];
}

/** The facts that are read of any job: the data of one that fails may be anything. */
const factsSchema = z.object({
  user: z.string().optional().catch(undefined),
  replyTo: z.string().optional().catch(undefined),
  keptUntil: z.number().optional().catch(undefined),
  traceparent: z.string().optional().catch(undefined),
  attempt: z.number().optional().catch(undefined),
});

/** Id of the chat that the job is an attempt at. */
export function chatIdOf({ id = '', data }: Pick<QueuedJob, 'id' | 'data'>): string {
  return isObject(data) && typeof data.chatId === 'string' ? data.chatId : id;
}

/** A job that this worker has taken, until BullMQ is done with it. All that is known here of the job is a field. */
export class RunningJob {
  readonly id: string;
  readonly chatId: string;
  readonly provider: ProviderId;
  readonly queued: QueuedJob;
  /** The token of its lock. */
  readonly token: string;
  /** The clock of the deadlines, in milliseconds since the epoch: the store's. */
  readonly now: () => number;
  /** Its user, who waits for it, and the like, as far as they can be read. */
  readonly facts: z.output<typeof factsSchema>;
  /** When it was taken, by a clock that never jumps, in milliseconds. */
  readonly takenAt = performance.now();
  /** False once its lock was lost, or has been given back. */
  holdsLock = true;
  /** False once it has ended here; BullMQ may still be storing its outcome. */
  isInFlight = true;
  /** Whether its outcome was published; BullMQ may still be storing it. */
  isPublished = false;
  /** The reply of a stream, while it is being written. */
  deltas: DeltaStream | undefined;
  trace: JobTrace | undefined;
  /** Resolves once its earlier runs are recorded as lost. */
  lostRecorded: Promise<void> | undefined;
  /** Its calls here that were sent and have ended, in that order. */
  readonly calls: MeteredRow[] = [];
  /** The progress of its latest call; undefined before the first. */
  progress: CallProgress | undefined;
  readonly #listeners: readonly JobListener[];
  readonly #controller = new AbortController();
  /** Aborts with `Cancelled`, with `LockLost`, or with the `Failure` that the job is to end with. */
  readonly signal = this.#controller.signal;
  #startedAt: number | undefined;
  #firstDeltaAt: number | undefined;

  constructor({ queued, listeners = [], ...options }: RunningJobOptions) {
    ({ provider: this.provider, token: this.token, now: this.now } = options);
    this.queued = queued;
    this.#listeners = listeners;
    this.id = queued.id ?? '';
    this.chatId = chatIdOf(queued);
    this.facts = factsSchema.safeParse(queued.data).data ?? {};
  }

  /** The API process that alone waits for it; undefined for a stored chat, which any of them may be asked for. */
  get api(): string | undefined {
    return this.facts.keptUntil === undefined ? this.facts.replyTo : undefined;
  }

  abort(reason: Error): void {
    if (this.isInFlight) this.#controller.abort(reason);
  }

  /** Aborts it with `LockLost`: the store refuses its outcome from now on. False if it had ended, or held no lock. */
  loseLock(): boolean {
    const isLost = this.holdsLock && this.isInFlight;
    this.holdsLock = false;
    if (isLost) this.abort(new LockLost());
    return isLost;
  }

  taken(): void {
    for (const listener of this.#listeners) listener.taken?.(this);
  }

  /** To be called once, when its first call begins: the wait for a model counts as time in the queue. */
  begin(): void {
    this.#startedAt = this.now();
    for (const listener of this.#listeners) listener.begun?.(this);
  }

  recordFirstDelta(): void {
    this.#firstDeltaAt ??= this.now();
  }

  end(end: JobEnd | undefined, error?: unknown): void {
    this.isInFlight = false;
    for (const listener of this.#listeners) listener.ended?.(this, end, error);
  }

  get timings(): Timings {
    const now = this.now();
    const startedAt = this.#startedAt ?? now;
    const firstDeltaAt = this.#firstDeltaAt;
    // Two processes know the store's time to within a few milliseconds.
    return {
      queueMs: Math.max(0, startedAt - this.queued.timestamp),
      providerMs: now - startedAt,
      firstTokenMs: firstDeltaAt && Math.max(0, firstDeltaAt - startedAt),
    };
  }
}
