import type { JsonObject } from '../../shared/json/json.js';

/** The parameters of a call, by our names. */
export interface CallParameters extends Partial<Record<Tuning, unknown>> {
  readonly stop?: readonly string[] | undefined;
  readonly tools?: readonly OfferedTool[] | undefined;
  readonly toolChoice?: 'auto' | 'none' | 'required' | { readonly name: string } | undefined;
  readonly parallelToolCalls?: boolean | undefined;
  readonly format?: AskedFormat | undefined;
  /** Whether what the model thinks is wanted in the reply, encrypted. */
  readonly wantsReasoning?: boolean | undefined;
  /** Whether thinking is wanted in words. */
  readonly showsThinking?: boolean | undefined;
  /** Which part of a reply is asked for, 0 for the first; absent where the provider continues none. */
  readonly hop?: number | undefined;
  /** How many turns stand before the last mark of what may be cached; tools stand before all of them. */
  readonly markedTurns?: number | undefined;
}

type Tuning =
  | ('maxOutputTokens' | 'temperature' | 'topP' | 'seed')
  | ('frequencyPenalty' | 'presencePenalty' | 'reasoningEffort' | 'verbosity');

/** A tool that the model may call. */
export interface OfferedTool {
  readonly name: string;
  readonly description?: string | undefined;
  /** The JSON Schema of its arguments. */
  readonly parameters?: JsonObject | undefined;
  readonly strict?: boolean | undefined;
}

/** The JSON that a reply has to be. */
interface AskedFormat extends Omit<OfferedTool, 'name' | 'parameters'> {
  readonly name?: string | undefined;
  readonly type: 'json_object' | 'json_schema';
  readonly schema?: JsonObject | undefined;
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
  /** Whether the calls have what only this provider's models can read. */
  readonly isSigned: boolean;
  /** Whether the pieces of its calls come one after the other, with a wait between them. */
  readonly isSlow: boolean;
  readonly ending: Ending;
  /** Vertex AI's word for the end, where it is another than usual. */
  readonly endsAs?: string | undefined;
  /** The text that the call named and that the reply ends before. */
  readonly stoppedBy?: string | undefined;
  readonly inputTokens: number;
  /** With those of its thinking. */
  readonly outputTokens: number;
  readonly reasoningTokens: number;
  /** Input tokens read from the provider's cache, and written to it. */
  readonly cachedTokens: number;
  readonly cacheWriteTokens: number;
  readonly hasUsage: boolean;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  /** The call's body, for options that change the answer's shape. */
  readonly request: JsonObject;
}
