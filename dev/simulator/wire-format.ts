import type { IncomingHttpHeaders } from 'node:http';
import type { ProviderId } from '../../shared/contracts/contract.js';
import type { Turn } from '../../shared/conversation.js';
import type { JsonObject } from '../../shared/json/json.js';
import type { CallParameters, Reply } from './exchange.js';
import type { PartRules } from './part-rules.js';
import type { ErrorBodies, Refusal } from './refusal.js';
import type { MadeCall } from './signature.js';

/** The head of a request; `path` has no query. */
export interface RequestHead {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
}

/** The parts of a call's address; absent where the format has the model or the streaming flag in the body. */
export interface Route {
  readonly model?: string;
  readonly stream?: boolean;
}

/** A piece of a streamed body that is never split. */
export type Frame = string | Buffer;

/** A streamed body: the frames before the text, one frame per piece of it, and those after it. */
export interface StreamFrames {
  readonly opening: readonly Frame[];
  readonly deltas: readonly Frame[];
  readonly closing: readonly Frame[];
}

/** One provider's wire format: the only place that knows its addresses, rules, answers and errors. */
export interface WireFormat {
  readonly provider: ProviderId;
  readonly streamType: string;
  /** A 200 of the wrong shape: a whole body, and a frame of a stream. */
  readonly garbage: { readonly whole: object; readonly frame: Frame };
  readonly errors: ErrorBodies;
  /** Whether the request is addressed to this provider, even if the operation is unknown. */
  owns(head: RequestHead): boolean;
  /** The operation, or the provider's error for an address or method it does not know. */
  route(head: RequestHead): Route | Refusal;
  authenticate(head: RequestHead): Refusal | undefined;
  validate(body: JsonObject): Refusal | undefined;
  /** The rules for tools, the format and the parts of turns, beyond the shape of a body. */
  readonly partRules: PartRules;
  /** The conversation of a valid body in order, with our names of roles. */
  turns(body: JsonObject): Turn[];
  /** The parameters of a valid body; undefined values are absent from it. */
  parameters(body: JsonObject): CallParameters;
  /** The opaque data that its models put before a call that they sign; absent where they sign nothing. */
  signatureOf?(call: MadeCall): string;
  headers(callId: number): Record<string, string>;
  reply(reply: Reply): object;
  stream(reply: Reply): StreamFrames;
  /** A sign of life while a model works; absent where there are none. They are counted behind each part of the opening. */
  lifeSign?(of: 'thinking' | 'arguments', count: { place: number; index: number }): Frame | undefined;
  /** Whether a 200 can say of itself that it failed. */
  readonly failsInReply?: boolean;
  /** The frame of an error within a 200 stream, of which there may be several forms by turns. */
  streamError(callId: number): Frame;
  /** A frame that breaks the rules of the format. */
  malformed(): Frame;
}
