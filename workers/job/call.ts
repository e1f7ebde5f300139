import type { PoolConfig } from '../../shared/config/pool-config.js';
import type { ChatJob } from '../../shared/protocol/messages.js';
import type { Circuit } from '../gate/circuit.js';
import type { Cooldown } from '../gate/cooldown.js';
import type { AdmittedCall, GatedCall } from '../gate/gated-call.js';
import type { Slot } from '../gate/slots.js';
import { patienceFor } from '../gate/waiting-jobs.js';
import type { ModelNotes } from './model-notes.js';
import { imageBytesOf, type ModelRequest, type NarrowedRequest, narrow, type Omitted } from './model-request.js';
import type { RunningJob } from './running-job.js';

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
  readonly circuit: Pick<Circuit, 'run'> & { readonly cooldown: Pick<Cooldown, 'leftMs'> };
  readonly notes: Pick<ModelNotes, 'find' | 'of'>;
  readonly settings: PoolConfig;
  /** Whether another provider may be asked if this one fails. */
  readonly hasFallback: boolean;
}

/** Parts that a call is made without because the first was refused for them, or whether it is made as asked for. */
interface Repetition {
  readonly omitted?: Omitted | undefined;
  /** Whether it is made with all parts, also those that its model is known to refuse. */
  readonly isAsAsked?: boolean;
}

/** One call of its provider that a job makes, as the steps of the call chain read it. */
export class Call implements GatedCall {
  readonly asked: Asked;
  readonly kind: GatedCall['kind'];
  readonly repetition: Repetition;
  readonly jobId: string;
  readonly model: string;
  /** After this the call is of use only if its reply has begun, in milliseconds since the epoch. */
  readonly deadline: number;
  readonly patienceMs: number;
  readonly stop: AbortSignal;
  readonly slot: Slot;
  readonly user: string | undefined;
  readonly hasFallback: boolean;
  readonly schema: string | undefined;
  readonly imageBytes: number;
  /** Undefined until the gate has let it in. */
  pass: AdmittedCall | undefined;
  /** Ends the call itself; that of the job until the call has one of its own. */
  signal: AbortSignal;
  onActivity = () => {};
  /** The span of the call, when it is traced. */
  traceparent: string | undefined;
  hasBegun = false;
  readonly #listeners: (() => void)[] = [];
  #known: Omitted | undefined;
  #narrowed: NarrowedRequest | undefined;

  constructor(asked: Asked, kind: GatedCall['kind'] = 'first', repetition: Repetition = {}) {
    const { job, chatJob, request } = asked;
    this.asked = asked;
    this.kind = kind;
    this.repetition = repetition;
    this.deadline = startOf(chatJob);
    ({ signal: this.stop, signal: this.signal, slot: this.slot, id: this.jobId } = job);
    ({ hasFallback: this.hasFallback, schema: this.schema } = asked);
    this.patienceMs = this.hasFallback ? patienceFor(this.leftMs()) : Number.POSITIVE_INFINITY;
    this.user = chatJob.user;
    this.model = request.model;
    this.imageBytes = imageBytesOf(request);
  }

  leftMs(): number {
    return this.deadline - this.asked.job.now();
  }

  get progress(): { readonly hasBegun: boolean } {
    return this;
  }

  retry(omitted?: Omitted): Call {
    return new Call(this.asked, omitted ? 'repetition' : 'retry', { omitted });
  }

  /** After a call that was refused although it was made without the known parts. */
  retryAsAsked(): Call {
    return new Call(this.asked, 'repetition', { isAsAsked: true });
  }

  /** The parts that its model is known to refuse, as of the first look. */
  get known(): Omitted {
    const { request, notes, chatJob } = this.asked;
    const isWhole = chatJob.isStrict || this.repetition.isAsAsked;
    const hints = isWhole ? undefined : notes.find(this.model)?.hints;
    this.#known ??= hints?.omittedFrom(request, this.user) ?? {};
    return this.#known;
  }

  /** The request that it makes. */
  get narrowed(): NarrowedRequest {
    this.#narrowed ??= narrow(this.asked.request, { ...this.known, ...this.repetition.omitted });
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
