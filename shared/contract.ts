/**
 * The words both sides of the queue and every client agree on. Plain interfaces without imports: the OpenAPI
 * document and the request validation are generated from them.
 */

/** A provider of language models, as the `X-LLM` header names it. */
export type ProviderId = 'openai' | 'anthropic' | 'bedrock' | 'vertexai';

/** Every provider, in the order they are listed to people. */
export const providerIds: readonly ProviderId[] = ['openai', 'anthropic', 'bedrock', 'vertexai'];

/** Sender of a message. */
export type Role = 'system' | 'user' | 'assistant';

/** One message of a conversation as a caller sends it. */
export interface Message {
  /** Sender of the message; absent means `user`. */
  role?: Role;
  /** Text of the message; absent means empty, and a blank message is dropped. */
  content?: string;
}

/** Body of `POST /chat`. */
export interface ChatRequest {
  /** The conversation, oldest message first. */
  messages: Message[];
}

/** Body of a successful `POST /chat`. */
export interface ChatResponse {
  /** The model's reply. */
  response: string;
}

/** Why a request failed; the set is closed. */
export type ProblemCode =
  | 'invalid_json'
  | 'invalid_request'
  | 'empty_conversation'
  | 'unknown_provider'
  | 'unauthorized'
  | 'not_found'
  | 'method_not_allowed'
  | 'payload_too_large'
  | 'unsupported_media_type'
  | 'provider_error'
  | 'provider_rejected'
  | 'provider_rate_limited'
  | 'provider_timeout'
  | 'content_blocked'
  | 'provider_unavailable'
  | 'overloaded'
  | 'timeout'
  | 'queue_unavailable'
  | 'internal';

/** One place of the request that is wrong. */
export interface ProblemError {
  /** JSON Pointer (RFC 6901) into the body, or the name of a header. */
  pointer: string;
  /** What is wrong there. */
  detail: string;
}

/** An error answer, `application/problem+json` (RFC 9457). */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  /** Machine-readable reason, stable across versions. */
  code: ProblemCode;
  /** Also sent as `X-Request-Id`; quote it when you ask the operators. */
  requestId: string;
  errors?: ProblemError[];
  provider?: ProviderId;
  /** Whether the same request may succeed later. */
  retryable?: boolean;
}

/** One message after validation: a known role and a text that is not blank. */
export interface Turn {
  role: Role;
  content: string;
}
