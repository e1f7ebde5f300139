import type { IncomingHttpHeaders } from 'node:http';
import type { ProviderId } from '../../shared/contracts/contract.js';
import type { Turn } from '../../shared/conversation.js';
import type { JsonObject } from '../../shared/json/json.js';
import type { CallParameters, MadeCall, Reply } from './exchange.js';
import type { PartRules } from './part-rules.js';
import type { Path, Refusal } from './refusal.js';

/** Where a part is in a conversation without its system texts. */
export interface Place {
  readonly turn: number;
  readonly part: number;
}

/** A fault of thinking: another model's; behind another conversation, or changed; one before it is missing. */
export type Breach = 'foreign' | 'elsewhere' | 'gap';

/** The errors of a provider, in its own format. */
export interface ErrorBodies {
  /** The value at the place is not what is expected there. */
  wrong(place: Path, expected: string): Refusal;
  contentType(received: string): Refusal;
  /** The body is not well-formed JSON, or not an object. */
  json(): Refusal;
  /** The model does not exist; `path` is the request's. */
  model(model: string | undefined, path: string): Refusal;
  /** The credentials do not open this model: a 401 that names it. */
  denied(model: string): Refusal;
  /** The provider's usual error for a status (400 to 599). */
  status(status: number): Refusal;
  tooLong(tokens: number, maxTokens: number): Refusal;
  notReady(): Refusal;
  /** Credit or a quota that is spent, as far as it has words of its own. */
  readonly quotas: readonly Refusal[];
  /** The model does not take a hint, which has our name. */
  hint(name: string, value: unknown): Refusal;
  /** The model always thinks, and cannot be forced to call a tool; absent where that is possible. */
  forcedChoice?(): Refusal;
  /** The model caches nothing that is marked; absent where marks do no harm. */
  cache?(): Refusal;
  /** The thinking before calls did not come back; absent where that may be. */
  lostReasoning?(): Refusal;
  /** The model takes some efforts only without tools, or not at all; undefined for those that it takes. */
  effort?(asked: { tools?: unknown; reasoningEffort?: unknown }, model: string): Refusal | undefined;
  /** The model does not think: it has nothing to encrypt, or does not take thinking; absent where it takes all. */
  reasoning?(): Refusal;
  /** Thinking came back elsewhere than it was, or changed; undefined where the provider drops it unsaid. */
  unbound?(place: Place, breach: Breach): Refusal | undefined;
  /** A signed part came back changed; absent where models sign nothing. */
  signature?(): Refusal;
}

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
  /** A sign of life while a model works, if there are any; they are counted behind each part of the opening. */
  lifeSign?(of: 'thinking' | 'arguments', count: { place: number; index: number }): Frame | undefined;
  /** Whether a 200 can say of itself that it failed. */
  readonly failsInReply?: boolean;
  /** The frame of an error within a 200 stream, of which there may be several forms by turns. */
  streamError(callId: number): Frame;
  /** A frame that breaks the rules of the format. */
  malformed(): Frame;
}
