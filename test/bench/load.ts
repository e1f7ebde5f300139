import { fork } from 'node:child_process';
import { once } from 'node:events';
import type { Traffic } from './traffic.js';

/** What the load generator is to do. Goes to it as a message. */
export interface LoadOrder {
  readonly traffic: Traffic;
  /** Each sends its next request when it has the answer to the last. */
  readonly connections: number;
  /** The connections begin one after another over this time, within the warm-up; absent means at once. */
  readonly spreadSeconds?: number;
  /** Where the connections lead, in turns, in place of the traffic's own. */
  readonly origins?: readonly string[];
  readonly warmUpSeconds: number;
  readonly seconds: number;
  /** A request without an answer for this long is an error. */
  readonly timeoutSeconds: number;
}

/** What came of it. */
export interface LoadResult {
  /** Answers with the expected status within the measured time; the latencies are theirs. */
  readonly answers: number;
  readonly seconds: number;
  /** Absent when there were no answers. */
  readonly p50Ms?: number;
  readonly p99Ms?: number;
  readonly errors: LoadErrors;
}

/** Requests that did not get the expected answer, counted from the beginning of the warm-up. */
export interface LoadErrors {
  /** Answers of another status, by status. */
  readonly wrongStatus: Readonly<Record<string, number>>;
  /** Of the right status, but another shape; only samples are looked at. */
  readonly wrongBody: number;
  readonly timeouts: number;
  /** Connections refused or reset. */
  readonly socket: number;
  /** Sent on a connection that the server then closed in good order without answering. */
  readonly unanswered: number;
}

/** What a load generator tells. */
export type LoadEvent<Result = LoadResult> =
  | { readonly type: 'measuring' }
  | { readonly type: 'measured' }
  | { readonly type: 'finished'; readonly result: Result };

export interface LoadListeners {
  /** The measured time begins; the argument is the load generator's process id. */
  onMeasuring(pid: number | undefined): void;
  onMeasured(): void;
  signal: AbortSignal;
}

/** A load generator that takes this much longer than it should is killed; a busy machine delays it. */
const patienceMs = 60_000;

/** Runs the load generator of requests. */
export function runLoad(order: LoadOrder, listeners: LoadListeners): Promise<LoadResult> {
  const maxMs = (order.warmUpSeconds + order.seconds) * 1000;
  return runGenerator(new URL('./load-generator.js', import.meta.url), { order, maxMs, listeners });
}

interface GeneratorRun {
  /** Goes to it as a message. */
  order: object;
  /** How long it should take. */
  maxMs: number;
  listeners: LoadListeners;
}

/** Runs a load generator, a process of its own so that sending does not disturb measuring. */
export async function runGenerator<Result>(
  module: URL,
  { order, maxMs, listeners: { onMeasuring, onMeasured, signal } }: GeneratorRun,
): Promise<Result> {
  const tooLong = AbortSignal.timeout(maxMs + patienceMs);
  const child = fork(module, { signal: AbortSignal.any([signal, tooLong]), killSignal: 'SIGKILL' });
  const ended = once(child, 'exit');
  const { promise: finished, resolve, reject } = Promise.withResolvers<Result>();
  child.on('error', (error) => {
    const seconds = (maxMs + patienceMs) / 1000;
    reject(tooLong.aborted ? new Error(`the load generator was not done after ${seconds} s`) : error);
  });
  child.on('exit', () => reject(new Error('the load generator ended before its time')));
  child.on('message', (event: LoadEvent<Result>) => {
    if (event.type === 'measuring') onMeasuring(child.pid);
    else if (event.type === 'measured') onMeasured();
    else resolve(event.result);
  });
  child.send(order);
  try {
    return await finished;
  } finally {
    if (child.connected) child.disconnect();
    await ended;
  }
}
