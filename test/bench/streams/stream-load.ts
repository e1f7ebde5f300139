import { type LoadListeners, runGenerator } from '../load.js';

/** What the load generator of streams is to do. Goes to it as a message. */
export interface StreamOrder {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Streams at once; each client begins its next when the last has ended. */
  readonly streams: number;
  /** Of each stream. */
  readonly deltas: number;
  /** How long one stream takes; the clients begin one after another over this time, and then it is the warm-up. */
  readonly streamMs: number;
  readonly seconds: number;
  /** A delta that arrives later than this after the provider has sent it counts as late. */
  readonly lateMs: number;
}

/** What came of it. */
export interface StreamResult {
  /** All streams, from the beginning of the warm-up to the end of the last one. */
  readonly streams: number;
  /** Those with every delta, in order, and the end they should have. */
  readonly whole: number;
  /** Why others are not, and how many. */
  readonly flaws: Readonly<Record<string, number>>;
  /** Deltas of the provider that arrived within the measured time. */
  readonly deltas: number;
  /** Events that they arrived in. */
  readonly events: number;
  /** Share of deltas after the first of their streams that were late: 0 to 1. */
  readonly lateShare: number;
  /** From the request to the first delta, of the streams that had it within the measured time. */
  readonly first: Times;
  /** From the moment the provider sent a delta, which is in its text, to its arrival; without the first of each stream. */
  readonly delay: Times;
}

/** Milliseconds; not a number when there were none. */
export interface Times {
  readonly count: number;
  readonly p50: number;
  readonly p99: number;
}

/** Runs the load generator of streams. */
export function runStreamLoad(order: StreamOrder, listeners: LoadListeners): Promise<StreamResult> {
  const maxMs = 3 * order.streamMs + order.seconds * 1000;
  return runGenerator(new URL('./stream-generator.js', import.meta.url), { order, maxMs, listeners });
}
