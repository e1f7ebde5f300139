import { Worker } from 'node:worker_threads';
import type { MarkdownAnswer } from './markdown-worker.js';

/** A thread that renders Markdown, one text at a time. */
export interface MarkdownThread {
  /** The text as HTML; undefined when it costs more than it may, and the thread may have ended over it. */
  render(markdown: string): Promise<string | undefined>;
  /** Whether another one has to be started for the next text. */
  ended(): boolean;
  end(): Promise<void>;
}

interface ThreadLimits {
  /** Time of a processor for one text, in milliseconds. */
  maxCpuMs: number;
}

/** Starts a thread. It keeps no process alive; what goes wrong in it is thrown by the `render` that it happens to. */
export function startMarkdownThread({ maxCpuMs }: ThreadLimits): MarkdownThread {
  const worker = new Worker(program, { name: 'markdown', execArgv: [], resourceLimits });
  worker.unref();
  /** What it tells next: at first that it is ready. Undefined when it has ended. */
  let turn = Promise.withResolvers<MarkdownAnswer | undefined>();
  let ended = false;
  const end = async () => {
    ended = true;
    turn.resolve(undefined);
    await worker.terminate();
  };
  worker.on('message', (answer: MarkdownAnswer) => turn.resolve(answer));
  worker.on('exit', () => void end());
  worker.on('error', (error) => {
    if (!isOutOfMemory(error)) turn.reject(error);
    void end();
  });
  return {
    ended: () => ended,
    end,
    async render(markdown) {
      const before = await turn.promise;
      if (before === undefined) return undefined;
      turn = Promise.withResolvers();
      worker.postMessage(markdown);
      const stopWatching = watch(worker, { maxMs: before.usedMs + maxCpuMs, onOverrun: end });
      const answer = await turn.promise.finally(stopWatching);
      return answer?.html;
    },
  };
}

/** As it was started itself: from JavaScript, or from its source. */
const program = new URL(`markdown-worker${import.meta.url.slice(-3)}`, import.meta.url);

/** Enough for the longest post of the shortest blocks, which are what takes the most; what needs more is refused. */
const resourceLimits = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 8 };

const isOutOfMemory = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY';

const lookEveryMs = 100;
/** A thread that has not got its share of a processor for so long will not get it. */
const patienceMs = 20_000;

interface Watch {
  maxMs: number;
  onOverrun: () => void;
}

/** Looks at what the thread uses: its own time and not the clock's, since a busy machine makes no text a hostile one. */
function watch(worker: Worker, { maxMs, onOverrun }: Watch): () => void {
  const startedAt = performance.now();
  let watching = true;
  const look = async () => {
    if (performance.now() - startedAt > patienceMs) return onOverrun();
    // Rejects when the thread has ended meanwhile.
    const used = await worker.cpuUsage().catch(() => undefined);
    if (watching && used && (used.user + used.system) / 1000 > maxMs) onOverrun();
  };
  const timer = setInterval(() => void look(), lookEveryMs);
  return () => {
    watching = false;
    clearInterval(timer);
  };
}
