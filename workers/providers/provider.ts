import type { ProviderId } from '../../shared/contracts/contract.js';
import type { Turn } from '../../shared/conversation.js';
import type { ModelParameters, ParameterName } from '../../shared/models/model-parameters.js';
import type { Usage } from '../../shared/protocol/attempts.js';
import type { Mark } from '../../shared/protocol/parts.js';
import type { withTimeout } from '../../shared/runtime/with-timeout.js';
import type { AddedPart } from './errors/refusals.js';

/** A request to a provider. */
export interface ProviderRequest {
  /** The conversation in order; at least one turn, none of them blank. Stored images have their `data`. */
  turns: readonly Turn[];
  /** The provider's own model name. */
  model: string;
  /** Upper bound of the reply with its thinking, in the provider's tokens; absent means the adapter's own, if any. */
  maxOutputTokens?: number | undefined;
  /**
   * An adapter passes on those that its provider's models can be asked for; the others were refused before. Schemas are
   * as the caller sent them: the adapter fits them to its provider (`fitSchema`).
   */
  parameters?: Omit<ModelParameters, 'maxOutputTokens' | 'cacheKey'> | undefined;
  /** The ends for which a reply may be blank: the caller's own limit or text to stop at may come before any text. */
  blankAllowedFor?: readonly FinishReason[];
  /** Sent along as the header of that name; absent when the call is not traced. */
  traceparent?: string | undefined;
  /** Ends the call: its reason is then thrown, and the call's socket is closed. */
  signal: AbortSignal;
  /** The parts of the reply that its caller can be given beside texts and calls; see the job's field. */
  reasoning?: 'opaque' | 'shown' | undefined;
  /** Whether the provider is asked for a stream; absent means if the reply is read piece by piece. */
  isStreamed?: boolean;
  /** Equal for requests that begin alike; absent where no provider needs it. */
  cacheKey?: string | undefined;
  /** Keyed hash of the user who asks; absent where the provider does not get it. */
  user?: string | undefined;
  /** Whether the model is asked for its thinking in words. */
  asksThinking?: boolean;
  /** The parts that the adapter adds by itself at other times, and that this model has refused. */
  omits?: ReadonlySet<AddedPart> | undefined;
  /** Called for each complete line or frame of a stream, also one without text. */
  onLife?: () => void;
  /** Called for the first part of the reply: thinking, opaque data, text or a call. */
  onBegin?: () => void;
  /** Completes a body before it is sent; absent where it is whole. */
  fillBody?: ((body: string) => Promise<Uint8Array>) | undefined;
  /** Bounds the wait behind a complete reply; by default with timers. */
  withTimeout?: typeof withTimeout;
}

/** Why a reply ended: finished, cut at the token limit, or withheld by the provider's content filter. */
export type FinishReason = 'stop' | 'length' | 'blocked';

/** A finished reply. */
export interface ProviderReply {
  /** The tape: its texts, thinking, opaque data and the arguments of its calls, joined. */
  text: string;
  /** Where its parts begin; absent for a reply that is text alone. */
  marks?: readonly Mark[];
  reason: FinishReason;
  /** The model that answered, in the provider's words. */
  model: string;
  usage?: Usage;
}

/**
 * Called with each piece of the tape as it arrives, and with the mark of the part that the piece begins, if it begins
 * one. The first text is not blank, unless the whole reply is.
 */
export type OnDelta = (text: string, mark?: Mark) => void;

/**
 * One provider's adapter: reshapes a conversation to what the provider accepts, calls it once through its own SDK,
 * without retries, and returns the finished reply. With `onDelta` it asks for a stream, unless the request says
 * otherwise. Throws a `Failure` for everything expected (`provider_error`, `provider_rejected`,
 * `provider_rate_limited`, `context_length_exceeded`, `content_blocked`), and the signal's own reason when the signal
 * ended the call.
 */
export interface Provider {
  readonly id: ProviderId;
  /** The hints that its requests have no field for; absent means none. */
  readonly ignores?: ReadonlySet<ParameterName>;
  /** The longest result of a call that its adapter reads, in characters; absent means that it reads none. */
  readonly parsesResultsTo?: number;
  /** Whether later system texts may stay messages of their own; absent means not. */
  readonly keepsSystem?: boolean;
  run(request: ProviderRequest, onDelta?: OnDelta): Promise<ProviderReply>;
  close(): void;
}
