import type { PoolSettings } from '../../shared/config/pool-settings.js';
import type { ChatJob } from '../../shared/protocol/messages.js';
import type { Circuit } from './circuit.js';
import type { Cooldown } from './cooldown.js';
import type { ModelRequest } from './model-request.js';
import { patienceFor, type RetryShare } from './retry.js';
import type { RunningJob } from './running-job.js';
import type { Slot } from './slots.js';
import type { CallKind } from './waiting-jobs.js';

/** What the calls of a job have in common. */
interface Asked {
  readonly job: RunningJob;
  readonly chatJob: ChatJob;
  readonly request: ModelRequest;
  readonly circuit: Circuit;
  readonly settings: PoolSettings;
  /** Whether another provider may be asked if this one fails. */
  readonly hasFallback: boolean;
}

/** One call of its provider that a job makes, as the steps of the call chain read it. */
export class Call {
  readonly asked: Asked;
  readonly kind: CallKind;
  /** When the call is of no use any more unless its reply has begun, in milliseconds since the epoch. */
  readonly deadline: number;
  /** How long it waits at most for a model that is limited, in milliseconds; absent means until the deadline. */
  readonly patienceMs?: number;
  /** Ends the call itself; the signal of the job until the call has one of its own. */
  signal: AbortSignal;
  /** To be called whenever the provider sends something. */
  onActivity = () => {};
  isUsersProbe = false;
  #hasBegun = false;
  readonly #listeners: (() => void)[] = [];

  constructor(asked: Asked, kind: CallKind = { isRetry: false }) {
    this.asked = asked;
    this.kind = kind;
    this.deadline = startOf(asked.chatJob);
    this.signal = asked.job.signal;
    if (asked.hasFallback) this.patienceMs = patienceFor(this.deadline - this.now());
  }

  get job(): RunningJob {
    return this.asked.job;
  }

  /** Ends the job. */
  get stop(): AbortSignal {
    return this.job.signal;
  }

  get slot(): Slot {
    return this.job.slot;
  }

  /** Id of the user who asks. */
  get user(): string {
    return this.asked.chatJob.user;
  }

  get hasFallback(): boolean {
    return this.asked.hasFallback;
  }

  get budget(): RetryShare {
    return this.asked.circuit.budget.shareOf(this.user);
  }

  get cooldown(): Pick<Cooldown, 'leftMs'> {
    return this.asked.circuit.cooldown;
  }

  /** Whether the reply of a stream has begun. */
  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  /** Later attempts are not retried: otherwise one chat could make twice as many calls as it has targets. */
  get mayRetry(): boolean {
    return (this.asked.chatJob.attempt ?? 1) === 1 && !this.job.deltas?.hasBegun;
  }

  now(): number {
    return this.job.now();
  }

  /** The same call once more. */
  retry(): Call {
    return new Call(this.asked, { isRetry: true });
  }

  /** The listener hears when the reply of a stream begins. */
  onBegun(listener: () => void): void {
    this.#listeners.push(listener);
  }

  begin(): void {
    this.#hasBegun = true;
    this.job.recordFirstDelta();
    for (const listener of this.#listeners) listener();
  }
}

/** When a call is of no use any more that has not begun to answer, in milliseconds since the epoch. */
export const startOf = ({ deadline, firstDeltaBy = deadline }: ChatJob): number =>
  Math.min(deadline, firstDeltaBy);
