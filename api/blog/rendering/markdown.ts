import { Worker } from 'node:worker_threads';
import PQueue from 'p-queue';
import type { MarkdownAnswer, MarkdownTask, TitledText } from './markdown-worker.js';

/** Increase it whenever the same text gives different HTML: caches depend on it. */
export const rendererVersion = 2;

/** The outcome of rendering a text. */
export type Rendering = { readonly kind: 'rendered'; readonly html: string } | Refusal;

type Refusal = typeof refused | typeof busy;

/** The text needs more time or memory than the limits allow, and always will. */
const refused = { kind: 'refused' } as const;
/** Too many texts wait, or this one has waited for too long. */
const busy = { kind: 'busy' } as const;

/** Reads Markdown in another thread than the one that answers requests. */
export type MarkdownRenderer = ReturnType<typeof createMarkdownRenderer>;

interface RendererLimits {
  /** Processor time for one text, in milliseconds. */
  maxCpuMs?: number;
  /** Maximum number of texts that are being rendered or wait. */
  maxWaiting?: number;
  /** How long a text may wait before its rendering begins, in milliseconds. */
  maxWaitMs?: number;
  /** How long an idle thread lives, in milliseconds. */
  idleMs?: number;
  /** How long one text may take by the clock, in milliseconds: a thread that gets no processor time gets none later. */
  timeoutMs?: number;
  /** A monotonic clock, in milliseconds. */
  now?: () => number;
}

/** Makes a renderer with one thread, which starts with the first text. Ordinary texts take milliseconds. */
export function createMarkdownRenderer({
  maxCpuMs = 1000,
  maxWaiting = 32,
  maxWaitMs = 2000,
  idleMs = 60_000,
  timeoutMs = 20_000,
  now = () => performance.now(),
}: RendererLimits = {}) {
  let thread: MarkdownThread | undefined;
  let idleTimer: NodeJS.Timeout | undefined;
  let closed = false;
  const queue = new PQueue({ concurrency: 1 });
  const runNow = async (task: MarkdownTask, queuedAt: number): Promise<string | Refusal> => {
    if (closed || now() - queuedAt > maxWaitMs) return busy;
    clearTimeout(idleTimer);
    if (thread === undefined || thread.ended) thread = new MarkdownThread({ maxCpuMs, timeoutMs });
    const current = thread;
    const text = await current.run(task);
    idleTimer = setTimeout(() => void current.end(), idleMs).unref();
    return text ?? (closed ? busy : refused);
  };
  /** Each priority has a queue of its own, and the higher one comes first. */
  const run = async (task: MarkdownTask, priority: number): Promise<string | Refusal> => {
    if (queue.sizeBy({ priority }) + queue.pending >= maxWaiting) return busy;
    const queuedAt = now();
    return queue.add(() => runNow(task, queuedAt), { priority });
  };
  return {
    /**
     * Renders Markdown (CommonMark, tables, strikethrough, bare links, footnotes, tasks, HTML) as HTML that is safe in
     * a page: no scripts, styles, forms or frames; only relative addresses and those of http, https and mailto.
     */
    async render(markdown: string): Promise<Rendering> {
      const html = await run({ markdown }, 1);
      return typeof html === 'string' ? { kind: 'rendered', html } : html;
    },
    /**
     * The beginning of a text as one line of plain text, at most 240 characters and an ellipsis; undefined when the
     * thread has no time for it. Holds up no text to render.
     */
    async excerpt(text: TitledText): Promise<string | undefined> {
      const excerpt = await run({ excerptOf: text }, 0);
      return typeof excerpt === 'string' ? excerpt : undefined;
    },
    /** The outcome of all that still waits is `busy`. */
    async close(): Promise<void> {
      closed = true;
      clearTimeout(idleTimer);
      await thread?.end();
    },
  };
}

/** Escapes a text for an HTML element or a quoted attribute. */
export const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => `&${entities.get(character)};`);

const entities = new Map([
  ['&', 'amp'],
  ['<', 'lt'],
  ['>', 'gt'],
  ['"', 'quot'],
  ["'", '#39'],
]);

/** The beginning of a rendered text as one line of plain text, at most 80 characters and an ellipsis. */
export function excerptOf(html: string): string {
  const text = textOf(html);
  const [cut = ''] = /^.{0,80}(?= |$)|^.{0,80}/su.exec(text) ?? [];
  return cut.length < text.length ? `${cut}…` : text;
}

/** Whether a rendered text begins with a first-level heading that equals the title. */
export function beginsWithTitle(html: string, title: string): boolean {
  const [heading] = /^<h1(?: [^>]*)?>.*?<\/h1>/s.exec(html.slice(0, 4000)) ?? [];
  return heading !== undefined && textOf(heading) === title.trim().replace(/\s+/g, ' ');
}

/** The first 4,000 characters of a rendered text, in which every < begins a tag, as one line of plain text. */
const textOf = (html: string): string =>
  html
    .slice(0, 4000)
    .replace(/<[^>]*>?/g, '')
    .replace(/&(?:amp|lt|gt|quot|#39);/g, (entity) => characters.get(entity) ?? '')
    .trim()
    .replace(/\s+/g, ' ');

const characters = new Map([...entities].map(([character, name]) => [`&${name};`, character]));

/** How long one task may take: of the processor and by the clock, in milliseconds. */
interface TaskLimits {
  readonly maxCpuMs: number;
  readonly timeoutMs: number;
}

/** Works on Markdown in a thread that keeps no process alive, one task at a time; its errors reject `run`. */
class MarkdownThread {
  readonly #worker = new Worker(program, { name: 'markdown', execArgv: [], resourceLimits });
  readonly #limits: TaskLimits;
  /** The thread's next message, the first of which says that it is ready; undefined when the thread has ended. */
  #nextMessage = Promise.withResolvers<MarkdownAnswer | undefined>();
  ended = false;

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
    this.ended = true;
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
