import type { BreakerState } from './breaker.js';
import type { Slot } from './slots.js';

/** A call as the gate reads it. */
export interface GatedCall {
  readonly jobId: string;
  readonly model: string;
  /** Id of the user who asks. */
  readonly user: string | undefined;
  /** A `retry` follows a failure that may pass, a `repetition` a refusal, which shows nothing about the provider. */
  readonly kind: 'first' | 'retry' | 'repetition';
  readonly slot: Slot;
  /** Ends the job. */
  readonly stop: AbortSignal;
  /** Time until the call is of use only if its reply has begun, in milliseconds. */
  leftMs(): number;
  /** How long it waits at most for a model that is limited or fails, in milliseconds. */
  readonly patienceMs: number;
  /** Whether another provider may be asked if this one fails. */
  readonly hasFallback: boolean;
  /** Size of its stored images, and of texts that lay beside its job, in bytes. */
  readonly besideBytes: number;
  readonly progress: {
    /** Whether the provider has given a sign of life. */
    readonly isAlive: boolean;
    /** Whether a part of the reply has come. */
    readonly hasBegun: boolean;
  };
}

/** The gate's answer to a call that may begin. */
export interface Pass {
  /** Whether it is the one call that a half-open breaker lets through. */
  readonly isProbe: boolean;
}

/** A call that its circuit has let in, as breakers see it. */
export interface AdmittedCall extends Pass, Pick<GatedCall, 'progress'> {
  isProbe: boolean;
  /** Gives its slot to another job while it waits, if one more job may be here without a slot. */
  park(): void;
  /** When it was made, by `performance.now()`; undefined while it waits, which shows nothing about its provider. */
  startedAt: number | undefined;
}

/** How such a call ended. */
export interface EndedCall extends Pass {
  readonly error?: unknown;
  readonly isAlive: boolean;
  readonly isReplying: boolean;
  readonly tookMs: number;
}

/** The evidence about a provider that the end of a call gives. An `answer` came, and was no reply. */
export type Shown = { readonly kind: 'good' } | { readonly kind: 'answer' } | Fault;

export interface Fault {
  /** `silent` without an answer in time, `faint` if that shows little; `down` alone shows that no call gets a reply. */
  readonly kind: 'bad' | 'silent' | 'faint' | 'down';
  readonly reason: string;
  /** Whether no user can have brought it about. */
  readonly isCertain?: boolean;
}

/** A change of what may begin, of a model or, without one, of the account. */
export interface GateChange {
  readonly model?: string;
  /** The only user that it concerns; undefined if it concerns all. */
  readonly user?: string | undefined;
  /** The new state of a breaker; undefined when a cooldown has changed. */
  readonly state?: BreakerState | undefined;
}
