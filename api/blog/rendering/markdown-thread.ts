import { Worker } from 'node:worker_threads';
import type { MarkdownAnswer, MarkdownTask } from './markdown-worker.js';

/** How long one task may take: of the processor and by the clock, in milliseconds. */
interface TaskLimits {
  readonly maxCpuMs: number;
  readonly timeoutMs: number;
}

/** Works on Markdown in a thread that keeps no process alive, one task at a time; its errors reject `run`. */
export class MarkdownThread {
  readonly #worker = new Worker(program, { name: 'markdown', execArgv: [], resourceLimits });
  readonly #limits: TaskLimits;
  /** The thread's next message, the first of which says that it is ready; undefined when the thread has ended. */
  #nextMessage = Promise.withResolvers<MarkdownAnswer | undefined>();
  #ended = false;

  constructor(limits: TaskLimits) {
    this.#limits = limits;
    this.#worker.unref();
    this.#worker.on('message', (message: MarkdownAnswer) => this.#nextMessage.resolve(message));
    this.#worker.on('exit', () => void this.end());
    this.#worker.on('error', (error) => {
      if (!isOutOfMemory(error)) this.#nextMessage.reject(error);
      void this.end();
    });
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** The HTML or the excerpt; undefined when a limit is exceeded, which may end the thread. */
  async run(task: MarkdownTask): Promise<string | undefined> {
    const previous = await this.#nextMessage.promise;
    if (previous === undefined) return undefined;
    this.#nextMessage = Promise.withResolvers();
    this.#worker.postMessage(task);
    const { maxCpuMs, timeoutMs } = this.#limits;
    const limits = { maxCpuMs: previous.usedMs + maxCpuMs, timeoutMs };
    const stopWatching = watchCpu(this.#worker, limits, () => void this.end());
    const answer = await this.#nextMessage.promise.finally(stopWatching);
    return answer?.text;
  }

  async end(): Promise<void> {
    this.#ended = true;
    this.#nextMessage.resolve(undefined);
    await this.#worker.terminate();
  }
}

/** JavaScript or TypeScript, like this file itself. */
const program = new URL(`markdown-worker${import.meta.url.slice(-3)}`, import.meta.url);

/** Enough for the longest post of the shortest blocks, which need the most memory. */
const resourceLimits = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 8 };

const isOutOfMemory = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY';

const pollEveryMs = 100;

/** By the thread's processor time since its start: on a busy machine a harmless text takes long by the clock. */
function watchCpu(worker: Worker, { maxCpuMs, timeoutMs }: TaskLimits, onExceeded: () => void): () => void {
  const startedAt = performance.now();
  let watching = true;
  const poll = async () => {
    if (performance.now() - startedAt > timeoutMs) return onExceeded();
    // Rejects when the thread has ended meanwhile.
    const used = await worker.cpuUsage().catch(() => undefined);
    if (watching && used && (used.user + used.system) / 1000 > maxCpuMs) onExceeded();
  };
  const timer = setInterval(() => void poll(), pollEveryMs);
  return () => {
    watching = false;
    clearInterval(timer);
  };
}
