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
  /** How long it waits at most for a model that is limited, in milliseconds. */
  readonly patienceMs: number;
  /** Whether another provider may be asked if this one fails. */
  readonly hasFallback: boolean;
  /** Digest of the schemas that its provider compiles, and of its model; undefined without any. */
  readonly schema: string | undefined;
  /** Size of its stored images, in bytes. */
  readonly imageBytes: number;
  readonly progress: { readonly hasBegun: boolean };
}

/** The gate's answer to a call that may begin. */
export interface Pass {
  /** Whether it is the one call that a half-open breaker lets through. */
  readonly isProbe: boolean;
  /** Whether its schema is compiled first, as far as is known here: then silence says nothing about the provider. */
  readonly isCompiling: boolean;
  /**
   * To be called when a call whose schema is compiled first has had the time of any other. It goes on without a slot
   * and gives its place back when it has ended; undefined if it has to end now.
   */
  outlast(): Disposable | undefined;
}

/** A call that its circuit has let in, as breakers see it. */
export interface AdmittedCall extends Pass, Pick<GatedCall, 'user' | 'progress'> {
  isProbe: boolean;
  /** Whether it is the one call that the breaker of its user lets through. */
  readonly isUsersProbe: boolean;
  /** Gives its slot to another job while it waits, if one more job may be here without a slot. */
  park(): void;
  /** When it was made, by `performance.now()`; undefined while it waits, which shows nothing about its provider. */
  startedAt: number | undefined;
}

/** How such a call ended. */
export interface EndedCall extends Pick<AdmittedCall, 'user' | 'isUsersProbe' | 'isCompiling'> {
  readonly error?: unknown;
  readonly isReplying: boolean;
  readonly isProbe: boolean;
  readonly tookMs: number;
}

/** The health that its end shows; `down` means that no call gets an answer, as the samples before confirm. */
export type Sample = 'good' | 'bad' | 'down';
