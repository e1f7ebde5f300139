import type { ProviderId, Turn } from '../../shared/contract.js';

/** What a provider is asked. */
export interface ProviderRequest {
  /** The conversation in order; at least one turn, none of them blank. */
  turns: readonly Turn[];
  /** The provider's own model name. */
  model: string;
  /** Upper bound of the reply, in the provider's tokens. */
  maxOutputTokens: number;
  /** Ask for the reply piece by piece; the events are the same either way, only more of them. */
  stream: boolean;
}

/** Why a reply ended: finished, cut at the token limit, or withheld by the provider's content filter. */
export type FinishReason = 'stop' | 'length' | 'blocked';

/** Tokens as the provider counted them. */
export interface Usage {
  inputTokens: number;
  outputTokens: number;
}

/** A piece of a reply. The deltas joined are the text; `finish` is always last and comes exactly once. */
export type ProviderEvent =
  | { type: 'delta'; text: string }
  | { type: 'finish'; reason: FinishReason; model: string; usage?: Usage };

/**
 * One provider's adapter: reshapes a conversation to what the provider accepts, calls it through its own SDK once
 * (no retries), and turns whatever comes back into events.
 *
 * Throws a `Failure` for everything expected (`provider_error`, `provider_rejected`, `provider_rate_limited`) and
 * the signal's own reason when the signal ended the call. Aborting closes the call's socket.
 */
export interface Provider {
  readonly id: ProviderId;
  generate(request: ProviderRequest, signal: AbortSignal): AsyncIterable<ProviderEvent>;
  /** Closes idle connections. */
  close(): void;
}
