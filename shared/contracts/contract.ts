import type { ChatCompletion } from './completion-contract.js';

/**
 * The words both sides of the queue and every client agree on. Plain interfaces, which import nothing but one another:
 * the OpenAPI document and the request validation are generated from them.
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

/** Where a chat that is kept stands; `expired` is one whose deadline passed before there was a reply. */
export type ChatStatus = 'queued' | 'running' | 'completed' | 'failed' | 'cancelled' | 'expired';

/** Body of `POST /chat` when it is answered before the reply is there. */
export interface AcceptedChat {
  /** UUID; the chat is at `/chat/{id}`. */
  id: string;
  status: ChatStatus;
}

/** A chat that is kept, at `/chat/{id}`. Times are RFC 3339 in UTC, to the millisecond. */
export interface Chat extends AcceptedChat {
  provider: ProviderId;
  /** The model that was asked for, and once it has answered the one that did. */
  model?: string;
  createdAt: string;
  completedAt?: string;
  /** The text of the model's reply; there when it is completed. */
  response?: string;
  /** The whole reply, of a chat completion with tools, images or a format; there when it is completed. */
  completion?: ChatCompletion;
  /** Why there is no reply; there when it failed or expired. */
  error?: Problem;
  /** In dollars, of all its calls; absent while it is unknown, and for about a second after the end. */
  cost?: number;
}

/** Whether readers without a token that may write see a post. */
export type PostStatus = 'published' | 'draft';

/** A blog post; every field is always there. Times are RFC 3339 in UTC, to the millisecond. */
export interface Post {
  /** UUIDv7. */
  id: string;
  /** At most 300 characters. */
  title: string | null;
  /** Markdown, kept byte for byte. */
  content: string;
  /** At most 200 characters. */
  author: string;
  /** In the order they were given. */
  tags: string[];
  /** Unique; made from the title unless it was given. */
  slug: string;
  status: PostStatus;
  /** When it was first published; null for what never was. */
  publishedAt: string | null;
  createdAt: string;
  updatedAt: string;
  /** 1, and one more at every change. */
  version: number;
}

/** Body of `POST /blogs` and `PUT /blogs/{id}`: what is absent or null gets its default. */
export interface PostInput {
  /** Markdown; 1 to 262,144 characters, not blank. */
  content: string;
  /** One line of at most 300 characters, trimmed; null by default, and when it is blank. */
  title?: string | null;
  /** One line of at most 200 characters, trimmed; by default the owner of the token. */
  author?: string | null;
  /** At most 20, each a line of at most 50 characters, trimmed; none by default. */
  tags?: string[] | null;
  /** Lowercase letters, of any script, digits and single hyphens; made from the title by default. */
  slug?: string | null;
  /** `published` by default. */
  status?: PostStatus | null;
}

/** Body of `PATCH /blogs/{id}`, a JSON merge patch (RFC 7396): what is absent stays, null resets to the default. */
export interface PostPatch {
  /** Markdown; 1 to 262,144 characters, not blank. */
  content?: string;
  /** At most 300 characters. */
  title?: string | null;
  /** At most 200 characters. */
  author?: string | null;
  /** At most 20, each of at most 50 characters. */
  tags?: string[] | null;
  /** Lowercase letters, of any script, digits and single hyphens. */
  slug?: string | null;
  status?: PostStatus | null;
}

/** `GET /blogs?envelope=true`: one page of posts. */
export interface PostPage {
  /** Newest first. */
  data: Post[];
  /** Pass it as `cursor` to get the next page; null on the last one. */
  next: string | null;
}

/** The permissions of an access token; `admin` opens the operators' addresses, and none of the others. */
export type Scope = 'blogs:write' | 'blogs:read' | 'chat' | 'admin';

/** Every scope, in the order they are listed to people. */
export const scopes: readonly Scope[] = ['blogs:write', 'blogs:read', 'chat', 'admin'];

/** The role of a user; `admin` may sign in to the console. */
export type UserRole = 'user' | 'admin';

/** Every role, in the order they are listed to people. */
export const userRoles: readonly UserRole[] = ['user', 'admin'];

/** Body of `POST /admin/session`. */
export interface SignInInput {
  /** Name of a user with the role `admin`. */
  name: string;
  secret: string;
}

/** A session of the console. */
export interface ConsoleSession {
  /** Who is signed in. */
  user: {
    /** UUID. */
    id: string;
    name: string;
  };
  /** RFC 3339 in UTC, to the millisecond. */
  expiresAt: string;
}

/** Body of `POST /admin/preview`. */
export interface PreviewInput {
  /** Markdown; at most 262,144 characters. */
  content: string;
}

/** A text as the blog would show it. */
export interface Preview {
  /** Without scripts, styles and forms. */
  html: string;
}

/** Why a request failed; the set is closed. */
export type ProblemCode =
  | 'invalid_json'
  | 'invalid_request'
  | 'empty_conversation'
  | 'unknown_provider'
  | 'unauthorized'
  | 'insufficient_scope'
  | 'suspended'
  | 'cross_origin'
  | 'not_found'
  | 'method_not_allowed'
  | 'slug_taken'
  | 'name_taken'
  | 'own_user'
  | 'precondition_failed'
  | 'payload_too_large'
  | 'unsupported_media_type'
  | 'idempotency_key_reused'
  | 'rate_limited'
  | 'provider_error'
  | 'provider_rejected'
  | 'provider_rate_limited'
  | 'provider_timeout'
  | 'content_blocked'
  | 'context_length_exceeded'
  | 'provider_unavailable'
  | 'overloaded'
  | 'timeout'
  | 'queue_unavailable'
  | 'database_unavailable'
  | 'internal';

/** One place of the request that is wrong. */
export interface ProblemError {
  /** JSON Pointer (RFC 6901) into the body, or the name of a header or query parameter. */
  pointer: string;
  /** The error there. */
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

/** A provider, and its own name of the model; without one, its default model. */
export interface Target {
  provider: ProviderId;
  model?: string | undefined;
}
