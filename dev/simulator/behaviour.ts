import type { Ending } from './exchange.js';
import type { Lull } from './wire-format.js';

/**
 * How the bytes of a reply reach the client: all at once; half, and the rest when the gate of the model opens; half,
 * and then none while the connection stays open; half, and then a reset; truncated; byte by byte; without end; half,
 * and then malformed ones.
 */
export type Delivery = 'whole' | 'gated' | 'hang' | 'reset' | 'truncate' | 'drip' | 'endless' | 'malformed';

interface Pieces {
  readonly pieces: number;
  readonly length: number;
  /** The character that they repeat; absent means x. */
  readonly of?: string;
}

/** Replaced by the time when it is sent, in milliseconds since the epoch. */
export const noTimestamp = '0000000000000.000';

/** A reply with status 200, which may still go wrong in its ending or its delivery. */
export interface ReplyBehaviour {
  readonly kind: 'reply';
  /**
   * The text: a summary of the conversation, the last user turn, the numbers from 1 to this one, pieces of one length,
   * or so many timestamps.
   */
  readonly says: 'echo' | 'verbatim' | number | Pieces | { readonly timestamps: number };
  readonly ending: Ending;
  readonly delivery: Delivery;
  readonly delayMs: number;
  /** The wait between two pieces (two bytes of a drip), in milliseconds. */
  readonly gapMs: number;
  /**
   * The deltas after which a stream goes wrong or waits; absent means after half of them, or all when it is cut short.
   */
  readonly afterDeltas?: number;
  readonly withoutUsage?: boolean;
  /** How many parts follow the first, where the provider continues a reply. */
  readonly hops?: number;
  /** Vertex AI's word for the end. */
  readonly endsAs?: string;
  /** Before its text and before its calls it thinks; aloud in words, also where they are not asked for. */
  readonly thinks?: boolean | 'aloud';
  /** The fate of Claude's thinking that comes back elsewhere than it was; absent where that is not looked at. */
  readonly unboundThinking?: 'refused' | 'dropped';
  /** Behind the opening of a stream; before the whole reply when not streamed. */
  readonly lull?: Lull;
  /** The calls that it makes of the tools that are offered; absent means none. */
  readonly calls?: CallsBehaviour;
  /** The part of a request that is refused with the provider's error; absent for most models. */
  readonly refuses?: 'hints' | 'forced-choice' | 'signature' | 'reasoning' | 'effort' | 'lost-reasoning';
  /** The text is not the JSON that was asked for. */
  readonly withoutJson?: boolean;
}

/** How a reply calls tools. */
export interface CallsBehaviour {
  /** One call of each tool, or so many of the first one, or of the one that the choice names. */
  readonly amount: 'each' | number;
  readonly broken?: 'unknown' | 'garbage' | 'nameless';
  readonly isSigned?: boolean;
  /** The pieces of the arguments after which the token limit cuts them. */
  readonly cutAfter?: number;
  /** In how many pieces the arguments are streamed; absent means in a few. */
  readonly pieces?: number;
}

/** An error for `times` calls after the first `after` ones; those and all later calls get an echo. */
export interface ErrorBehaviour {
  readonly kind: 'error';
  readonly status: number;
  readonly after?: number;
  readonly times: number;
  readonly retryAfterS?: number | undefined;
}

/** The simulator's reaction to a call. */
export type Behaviour =
  | ReplyBehaviour
  | ErrorBehaviour
  // No answer, or a 401 that names the model, to the first `times` calls, and an echo for all later ones.
  | { readonly kind: 'hang' | 'denied'; readonly times: number }
  | { readonly kind: 'endless-error'; readonly status: number }
  | { readonly kind: 'quota'; readonly place: number }
  | { readonly kind: 'context'; readonly maxTokens: number }
  | { readonly kind: 'stream-error'; readonly reply: ReplyBehaviour }
  | { readonly kind: 'not-ready' | 'reset' | 'html' | 'garbage' };

/** The plain reply, also of an error behaviour for calls that it spares. */
export const echoBehaviour: ReplyBehaviour = {
  kind: 'reply',
  says: 'echo',
  ending: 'stop',
  delivery: 'whole',
  delayMs: 0,
  gapMs: 0,
};

/** The model name as documented, with `<…>` for numbers and keys, what it does, and the behaviour for the numbers. */
export type Row = readonly [name: string, summary: string, behave: (...numbers: number[]) => Behaviour];

export const reply = (facts: Partial<ReplyBehaviour> = {}): ReplyBehaviour => ({
  ...echoBehaviour,
  ...facts,
});

/** A reply that calls tools: one of them unless `facts` has another amount. */
export const calls = (facts: Partial<CallsBehaviour> = {}, more: Partial<ReplyBehaviour> = {}): Behaviour =>
  reply({ ...more, calls: { amount: 1, ...facts } });
