import type { BreakerState } from './breaker.js';

/** A call as the gate reads it. */
export interface GatedCall {
  readonly jobId: string;
  readonly model: string;
  /** Id of the user who asks. */
  readonly user: string | undefined;
  /** A `retry` follows a failure that may pass, a `repetition` a refusal, which shows nothing about the provider. */
  readonly kind: 'first' | 'retry' | 'repetition';
  /** BullMQ's priority of its job: 0 is the most urgent. */
  readonly priority: number;
  /** When its job was added, in milliseconds since the epoch. */
  readonly addedAt: number;
  /** Ends the job. */
  readonly stop: AbortSignal;
  /** Time until the call is of use only if its reply has begun, in milliseconds. */
  leftMs(): number;
  /** How long it may wait for a pause or a probe to end, in milliseconds. */
  readonly patienceMs: number;
  /** The pause before a retry, in milliseconds. */
  readonly pauseMs: number;
  /** Whether another provider may be asked if this one fails. */
  readonly hasFallback: boolean;
  /** Whether its reply is read as it is written, so that it may take long. */
  readonly isRead: boolean;
  /** Size of its stored images, and of texts that lay beside its job, in bytes. */
  readonly besideBytes: number;
  readonly progress: {
    /** Whether the provider has given a sign of life. */
    readonly isAlive: boolean;
    /** Whether a part of the reply has come. */
    readonly hasBegun: boolean;
  };
}

/** The user that a call counts for; all who have no name count as one. */
export const userOf = ({ user = '' }: Pick<GatedCall, 'user'>): string => user;

/** The gate's answer to a call that may begin. */
export interface Pass {
  /** Whether a breaker waits for its first sign of life. */
  readonly isProbe: boolean;
  /** To be called at its first sign of life. */
  onLife(): void;
}

/** The model and the user that a change concerns. */
export interface Concerns {
  /** Undefined if it concerns the account. */
  readonly model?: string | undefined;
  /** The only user that it concerns; undefined if it concerns all. */
  readonly user?: string | undefined;
}

/** A change of what may begin. */
export interface GateChange extends Concerns {
  /** The new state of a breaker; undefined when a rate limit has changed. */
  readonly state?: BreakerState | undefined;
}

/** The reason for aborting a job whose caller no longer waits for it, or may no longer have it done. */
export class Cancelled extends Error {
  override readonly name = 'Cancelled';
}

/** Why a job is aborted whose lock could not be renewed: another worker has it now, or will have it. */
export class LockLost extends Error {
  override readonly name = 'LockLost';
}

/** A job that has made no call goes back to its queue with this: another worker may make the call. */
export class NotBegun extends Error {
  override readonly name = 'NotBegun';

  /** `isDelayed` if this worker goes on taking jobs, and would have it back at once. */
  constructor(readonly isDelayed = false) {
    super();
  }
}

/** Why a call was cut that might have been answered: its job goes on to the next provider of its fallback. */
export class CutForFallback extends Error {
  override readonly name = 'CutForFallback';
}
