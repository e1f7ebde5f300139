import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { type ByPart, type PartPids, startMeter, type Usage } from './usage.js';

/** The requests of one measurement, as data that goes to the load generator. */
export interface Traffic {
  readonly origin: string;
  /** Each request takes one at random, and a body at random where there are any. */
  readonly paths: readonly string[];
  readonly bodies?: readonly string[];
  /** GET unless it says otherwise. */
  readonly method?: 'PATCH' | 'POST';
  /** `{unique}` in one, or in a body, becomes something that no other request has. */
  readonly headers?: Readonly<Record<string, string>>;
  /** 200 unless it says otherwise. */
  readonly status?: number;
  /** What every answer must be: an HTML page, or JSON whose object, or every item, has these fields. */
  readonly expected: 'page' | readonly string[];
}

/** What the load generator is to do; each connection sends its next request at the answer to the last. */
export interface LoadOrder {
  readonly traffic: Traffic;
  readonly connections: number;
  readonly warmUpSeconds: number;
  readonly seconds: number;
}

/** What came of it in the measured time; errors are counted from the beginning of the warm-up. */
type LoadResult = Readonly<Record<'answers' | 'perSecond' | 'p50Ms' | 'p99Ms' | 'errors', number>>;

/** What one measurement of one side came to. */
export interface Figures extends LoadResult {
  /** Milliseconds of processor time for one answer, of each part. */
  readonly cpuMs: ByPart;
  readonly othersBusy: number;
}

const generator = fileURLToPath(new URL('./load-generator.ts', import.meta.url));

/** Sends the requests from a process of their own; gives what came of them and what that cost the processes. */
export async function measure(order: LoadOrder, pids: PartPids, signal: AbortSignal): Promise<Figures> {
  const child = fork(generator, { signal, killSignal: 'SIGKILL' });
  const ended = once(child, 'exit').catch(() => undefined);
  const { promise, resolve, reject } = Promise.withResolvers<LoadResult>();
  child.on('error', reject);
  child.on('exit', () => reject(new Error('the load generator ended before its time')));
  let meter: ReturnType<typeof startMeter> | undefined;
  let usage: Usage | undefined;
  child.on('message', (event: 'measuring' | 'measured' | LoadResult) => {
    if (event === 'measuring') meter = startMeter({ ...pids, load: child.pid });
    else if (event === 'measured') usage = meter?.();
    else resolve(event);
  });
  child.send(order);
  try {
    const result = await promise;
    const perAnswer = ([part, cpu]: [string, number]) => [part, (cpu * 1000) / result.answers];
    const cpuMs = Object.fromEntries(Object.entries(usage?.cpuSeconds ?? {}).map(perAnswer));
    return { ...result, cpuMs, othersBusy: usage?.othersBusy ?? Number.NaN };
  } finally {
    if (child.connected) child.disconnect();
    await ended;
  }
}
