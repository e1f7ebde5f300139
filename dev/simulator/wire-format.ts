import type { IncomingHttpHeaders } from 'node:http';
import type { ProviderId, Turn } from '../../shared/contract.js';
import type { JsonObject } from './json.js';
import type { ErrorBodies, Refusal } from './refusal.js';

/** The head of a request; `path` has no query. */
export interface RequestHead {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
}

/** What the address of a call says; a format that puts the model or the streaming flag into the body leaves it out. */
export interface Route {
  readonly model?: string;
  readonly stream?: boolean;
}

/**
 * How a reply ends: finished; cut at the token limit; prompt withheld by the content filter; reply cut by the content
 * filter; refused by the model; no choices at all; a choice without text.
 */
export type Ending = 'stop' | 'length' | 'blocked' | 'blocked-reply' | 'refused' | 'empty' | 'null';

/** A reply before it is written down in a format. */
export interface Reply {
  /** The call's number; ids in the answer are made of it. */
  readonly callId: number;
  readonly model: string;
  readonly text: string;
  /** The text in the pieces a stream sends it in. */
  readonly pieces: readonly string[];
  readonly ending: Ending;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  /** The call's body, for options that change the answer's shape. */
  readonly request: JsonObject;
}

/** A piece of a streamed body that is never split. */
export type Frame = string | Buffer;

/** A streamed body: what comes before the text, one frame per piece of it, what comes after. */
export interface StreamFrames {
  readonly opening: readonly Frame[];
  readonly deltas: readonly Frame[];
  readonly closing: readonly Frame[];
}

/** One provider's wire format: the only place that knows its addresses, rules, answers and errors. */
export interface WireFormat {
  readonly provider: ProviderId;
  /** `Content-Type` of a streamed answer. */
  readonly streamType: string;
  /** A 200 of the wrong shape: a whole body, and a frame of a stream. */
  readonly garbage: { readonly whole: object; readonly frame: Frame };
  readonly errors: ErrorBodies;
  /** Whether the request is addressed to this provider, known operation or not. */
  owns(head: RequestHead): boolean;
  /** The operation, or the provider's error for an address or method it does not know. */
  route(head: RequestHead): Route | Refusal;
  authenticate(head: RequestHead): Refusal | undefined;
  /** The first of the provider's rules that a body breaks. */
  validate(body: JsonObject): Refusal | undefined;
  /** The conversation of a valid body in order, roles in our words. */
  turns(body: JsonObject): Turn[];
  /** Headers of a successful answer. */
  headers(callId: number): Record<string, string>;
  reply(reply: Reply): object;
  stream(reply: Reply): StreamFrames;
  /** The frame that says, within a 200 stream, that the provider failed. */
  streamError(): Frame;
}
