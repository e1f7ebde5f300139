import type { PoolConfig } from '../../shared/config/pool-config.js';
import type { ChatJob } from '../../shared/protocol/messages.js';
import type { Circuit } from './circuit.js';
import type { Cooldown } from './cooldown.js';
import type { ModelMemory } from './model-memory.js';
import { type ModelRequest, type NarrowedRequest, narrow, type Omitted } from './model-request.js';
import { patienceFor, type RetryBudget } from './retry.js';
import type { RunningJob } from './running-job.js';
import type { Slot } from './slots.js';

/** The common facts of the calls of a job. */
export interface Asked {
  readonly job: Pick<
    RunningJob,
    'id' | 'slot' | 'signal' | 'now' | 'deltas' | 'trace' | 'ignored' | 'begin' | 'recordFirstDelta'
  >;
  readonly chatJob: Pick<ChatJob, 'deadline' | 'firstDeltaBy' | 'attempt' | 'isStrict'> & {
    readonly user?: string | undefined;
  };
  readonly request: ModelRequest;
  /** As `schemaOf` has it. */
  readonly schema?: string | undefined;
  readonly circuit: Pick<Circuit, 'run' | 'park'> & {
    readonly cooldown: Pick<Cooldown, 'leftMs'>;
    readonly budget: Pick<RetryBudget, 'earn' | 'spend'>;
    readonly memory: ModelMemory;
  };
  readonly settings: PoolConfig;
  /** Whether another provider may be asked if this one fails. */
  readonly hasFallback: boolean;
}

/** Which of the two calls of its job it is, and what it is made without because the first was refused for that. */
interface CallKind {
  readonly isRetry: boolean;
  readonly omitted?: Omitted | undefined;
  /** Whether it is made with all parts, also those that its model is known to refuse. */
  readonly isAsAsked?: boolean;
}

/** One call of its provider that a job makes, as the steps of the call chain read it. */
export class Call {
  readonly asked: Asked;
  readonly kind: CallKind;
  /** After this the call is of use only if its reply has begun, in milliseconds since the epoch. */
  readonly deadline: number;
  /** How long it waits at most for a model that is limited, in milliseconds. */
  readonly patienceMs: number;
  /** Ends the job. */
  readonly stop: AbortSignal;
  readonly slot: Slot;
  /** Id of the user who asks. */
  readonly user: string | undefined;
  /** Ends the call itself; that of the job until the call has one of its own. */
  signal: AbortSignal;
  onActivity = () => {};
  /** The span of the call, when it is traced. */
  traceparent: string | undefined;
  /** Whether it is the one call that the breaker of its user lets through. */
  isUsersProbe = false;
  /** Whether it is the one call that a half-open breaker lets through. */
  isProbe = false;
  /** Whether its schema is compiled first, as far as is known here: then silence says nothing about the provider. */
  isCompiling = false;
  hasBegun = false;
  /** How long it has waited for room for its images, in milliseconds, which shows nothing about its provider. */
  waitedMs = 0;
  readonly #listeners: (() => void)[] = [];
  #known: Omitted | undefined;
  #narrowed: NarrowedRequest | undefined;

  constructor(asked: Asked, kind: CallKind = { isRetry: false }) {
    const { job, chatJob, hasFallback } = asked;
    this.asked = asked;
    this.kind = kind;
    this.deadline = startOf(chatJob);
    this.patienceMs = hasFallback ? patienceFor(this.deadline - job.now()) : Number.POSITIVE_INFINITY;
    ({ signal: this.stop, signal: this.signal, slot: this.slot } = job);
    this.user = chatJob.user;
  }

  retry(omitted?: Omitted): Call {
    return new Call(this.asked, { isRetry: true, omitted });
  }

  /** After a call that was refused although it was made without the known parts. */
  retryAsAsked(): Call {
    return new Call(this.asked, { isRetry: true, omitted: {}, isAsAsked: true });
  }

  /** The parts that its model is known to refuse, as of the first look. */
  get known(): Omitted {
    const { request, circuit, chatJob } = this.asked;
    this.#known ??=
      chatJob.isStrict || this.kind.isAsAsked ? {} : circuit.memory.omittedFrom(request, this.user);
    return this.#known;
  }

  /** The request that it makes. */
  get narrowed(): NarrowedRequest {
    this.#narrowed ??= narrow(this.asked.request, { ...this.known, ...this.kind.omitted });
    return this.#narrowed;
  }

  /** The listener hears when the reply of a stream begins. */
  onBegun(listener: () => void): void {
    this.#listeners.push(listener);
  }

  begin(): void {
    this.hasBegun = true;
    this.asked.job.recordFirstDelta();
    for (const listener of this.#listeners) listener();
  }
}

/** After this a call is of use only if it has begun to answer, in milliseconds since the epoch. */
export const startOf = ({ deadline, firstDeltaBy = deadline }: Asked['chatJob']): number =>
  Math.min(deadline, firstDeltaBy);
