import type { IncomingHttpHeaders } from 'node:http';
import type { ProviderId, Role } from '../../shared/contracts/contract.js';
import type { Part, Turn } from '../../shared/conversation.js';
import type { JsonObject } from '../../shared/json/json.js';

/** The parameters of a call, by our names. */
export interface CallParameters extends Partial<Record<Tuning, unknown>> {
  readonly stop?: readonly string[] | undefined;
  readonly tools?: readonly OfferedTool[] | undefined;
  /** The names of tools that the model does not see yet. */
  readonly deferredTools?: readonly string[] | undefined;
  readonly toolChoice?: 'auto' | 'none' | 'required' | { readonly name: string } | undefined;
  readonly parallelToolCalls?: boolean | undefined;
  readonly format?: AskedFormat | undefined;
  /** Whether what the model thinks is wanted in the reply, encrypted. */
  readonly wantsReasoning?: boolean | undefined;
  /** Whether thinking is wanted in words. */
  readonly showsThinking?: boolean | undefined;
  /** Which part of a reply is asked for, 0 for the first; absent where the provider continues none. */
  readonly hop?: number | undefined;
  /** Whether it marks what may be cached. */
  readonly isMarked?: boolean | undefined;
}

type Tuning =
  | ('maxOutputTokens' | 'temperature' | 'topP' | 'seed')
  | ('frequencyPenalty' | 'presencePenalty' | 'reasoningEffort' | 'verbosity');

/** A block of a conversation, and how long all up to it is cached where it has a mark. */
export interface CacheBlock {
  readonly role: Role;
  readonly part: Part;
  readonly ttl?: '5m' | '1h' | undefined;
}

/** A tool that the model may call. */
export interface OfferedTool {
  readonly name: string;
  readonly description?: string | undefined;
  /** The JSON Schema of its arguments. */
  readonly parameters?: JsonObject | undefined;
  readonly strict?: boolean | undefined;
}

/** The JSON that a reply has to be. */
interface AskedFormat {
  readonly type: 'json_object' | 'json_schema';
  readonly schema?: JsonObject | undefined;
  readonly strict?: boolean | undefined;
}

/** A call of a tool in a reply. */
export interface ReplyCall {
  /** Absent in a call that is broken so. */
  readonly name?: string | undefined;
  /** JSON text of an object, unless it was cut or is broken. */
  readonly arguments: string;
  /** The arguments as they are streamed; none for a call without arguments. */
  readonly pieces: readonly string[];
}

/** A call that a model has made. */
export type MadeCall = Pick<ReplyCall, 'name' | 'arguments'>;

/** A piece of thinking; its text is empty unless words were asked for. */
export interface Thought {
  readonly text: string;
  readonly signature: string;
}

/**
 * How a reply ends: finished; cut at the token limit; prompt blocked by the content filter; reply cut by the content
 * filter; refused by the model; no choices; a choice without text; a 200 that says of itself that it failed;
 * a part that has to be continued.
 */
export type Ending =
  | ('stop' | 'length' | 'blocked' | 'blocked-reply' | 'refused')
  | ('empty' | 'null' | 'failed' | 'continues');

/** One thing that a scripted model does. */
export interface Step {
  /** Calls this tool, with these arguments. */
  readonly call?: string;
  readonly with?: JsonObject;
  readonly think?: string;
  readonly say?: string;
  /** Refuses, in this category where the provider names one. */
  readonly refuse?: string;
  /** The provider's word for the end; not at openai. */
  readonly end?: string;
  /** At anthropic a search of the provider's own: a call, and its result. */
  readonly search?: string;
  /** At anthropic a block as it is, and the deltas of its stream. */
  readonly raw?: JsonObject;
  readonly deltas?: readonly JsonObject[];
  /** Milliseconds of silence: before all else of a turn, or between two steps. */
  readonly wait?: number;
  /** A status, a way in which a connection breaks, or a class of Claude's refusals. */
  readonly fail?: number | string;
  /** The first calls alone that fail; the others go on with the steps behind this one. */
  readonly times?: number;
}

/** A block of a scripted reply; the last two are anthropic's. */
export type ReplyBlock =
  | { readonly text: string }
  | { readonly thought: Thought }
  | { readonly call: ReplyCall }
  | { readonly search: string }
  | { readonly raw: JsonObject; readonly deltas?: readonly JsonObject[] | undefined };

/** A reply, independent of the wire format. */
export interface Reply {
  /** The call's number, from which the ids in the answer are made. */
  readonly callId: number;
  readonly model: string;
  readonly text: string;
  readonly pieces: readonly string[];
  /** They come after the text. */
  readonly calls: readonly ReplyCall[];
  /** The first stands before all else, a second between its text and its calls. */
  readonly thoughts: readonly Thought[];
  /** All of these in the order of a script, where the provider has blocks; absent means the usual order. */
  readonly blocks?: readonly ReplyBlock[] | undefined;
  /** Whether the calls have what only this provider's models can read. */
  readonly isSigned: boolean;
  /** Whether the pieces of its calls come one after the other, with a wait between them. */
  readonly isSlow: boolean;
  readonly ending: Ending;
  /** The provider's word for the end, where it is another than usual. */
  readonly endsAs?: string | undefined;
  /** The category of a refusal, where the provider names one. */
  readonly refusal?: string | undefined;
  /** The text that the call named and that the reply ends before. */
  readonly stoppedBy?: string | undefined;
  readonly inputTokens: number;
  /** With those of its thinking. */
  readonly outputTokens: number;
  readonly reasoningTokens: number;
  /** Input tokens read from the provider's cache, and written to it. */
  readonly cachedTokens: number;
  readonly cacheWriteTokens: number;
  /** How many of those are written for an hour. */
  readonly cacheWriteFor1hTokens: number;
  readonly hasUsage: boolean;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  /** The call's body, for options that change the answer's shape. */
  readonly request: JsonObject;
}

/** An error answer in a provider's format, ready to be sent. */
export interface Refusal {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A refusal with a JSON body. */
export function jsonRefusal(status: number, body: object, headers: Record<string, string> = {}): Refusal {
  return { status, headers: { 'Content-Type': 'application/json', ...headers }, body: JSON.stringify(body) };
}

/** The finding of a check in the first item that does not pass it. */
export function firstFault<T, Found>(
  items: readonly T[],
  check: (item: T, index: number, items: readonly T[]) => Found | undefined,
): Found | undefined {
  for (const [index, item] of items.entries()) {
    const found = check(item, index, items);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The name of a field in a body, such as `top_p`, for the name that this code uses. */
export const snakeCase = (name: string): string =>
  name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** Where in a body something is. */
export type Path = readonly (string | number)[];

/** A path with dots only, as in `tools.0.name`. */
export const dotted = (path: Path): string => path.join('.');

/** A path with indexes in brackets, as in `tools[0].name`. */
export const bracketed = (path: Path): string =>
  path.map((key, index) => (typeof key === 'number' ? `[${key}]` : `${index > 0 ? '.' : ''}${key}`)).join('');

/** A place, and what is expected there. */
export type Fault = readonly [place: Path, expected: string];

/** A provider's rules for tools, formats and parts. */
export interface PartRules {
  readonly toolName: RegExp;
  readonly callId?: RegExp;
  /** The rules that not all providers have. */
  readonly has: readonly (
    | ('one tool of a name' | 'described tools' | 'tools of a choice' | 'an offered choice')
    | ('tools of calls' | 'results alone' | 'signed calls' | 'words in texts' | 'the user last')
    | ('characters in texts' | 'the user first' | 'alternating roles')
  )[];
  /** Gives the words for what an image should be, if it is not; its type is undefined for bytes that are no image. */
  image?(data: string, mediaType: string, type: string | undefined): string | undefined;
  /** A schema of a tool by its index, or without one of a format: the path in it, and what is expected there. */
  schema(
    schema: JsonObject,
    of: { strict?: boolean | undefined; index?: number | undefined },
  ): Fault | undefined;
  readonly places: {
    readonly turns: Path;
    readonly choice: Path;
    readonly format: Path;
    tool(index: number): Path;
    /** The parameters within a tool. */
    readonly parameters: Path;
    /** A part of a turn; turns are counted without system texts. */
    part(turn: number, part: number): Path;
  };
}

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
  /** A refusal of a class that agents know, with a beta that the call names; undefined for other classes. */
  rejected?(rejection: string, beta: string): Refusal | undefined;
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
  /** The path with its query. */
  readonly url: string;
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
  /** A frame of the wrong shape. */
  readonly garbage: Frame;
  readonly errors: ErrorBodies;
  /** Whether the request is addressed to this provider, even if the operation is unknown. */
  owns(head: RequestHead): boolean;
  /** The operation, or the provider's error for an address or method it does not know. */
  route(head: RequestHead): Route | Refusal;
  authenticate(head: RequestHead): Refusal | undefined;
  /** The error for a rule of its own that a body breaks; types and the adapters' tests hold the shape of bodies. */
  validate?(body: JsonObject, head: RequestHead): Refusal | undefined;
  /** The rules for tools, the format and the parts of turns, beyond the shape of a body. */
  readonly partRules: PartRules;
  /** The conversation of a valid body in order, with our names of roles. */
  turns(body: JsonObject): Turn[];
  /** The blocks of a valid body with their marks; absent where a mark stands behind all of it. */
  cacheBlocks?(body: JsonObject): readonly CacheBlock[];
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
