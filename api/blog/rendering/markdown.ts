import PQueue from 'p-queue';
import { MarkdownThread } from './markdown-thread.js';
import type { MarkdownTask, TitledText } from './markdown-worker.js';

/** Increase it whenever the same text gives different HTML: caches depend on it. */
export const rendererVersion = 2;

/** The outcome of rendering a text. */
export type Rendering =
  | { readonly kind: 'rendered'; readonly html: string }
  /** The text needs more time or memory than the limits allow, and always will. */
  | { readonly kind: 'refused' }
  /** Too many texts wait, or this one has waited for too long. */
  | { readonly kind: 'busy' };

/** How a task ended: with its texts, or why without them. */
type Outcome = { kind: 'done'; texts: readonly string[] } | Exclude<Rendering, { kind: 'rendered' }>;

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
  const runNow = async (task: MarkdownTask, queuedAt: number): Promise<Outcome> => {
    if (closed || now() - queuedAt > maxWaitMs) return { kind: 'busy' };
    clearTimeout(idleTimer);
    if (thread === undefined || thread.ended) thread = new MarkdownThread({ maxCpuMs, timeoutMs });
    const current = thread;
    const texts = await current.run(task);
    idleTimer = setTimeout(() => void current.end(), idleMs).unref();
    if (texts !== undefined) return { kind: 'done', texts };
    return { kind: closed ? 'busy' : 'refused' };
  };
  const run = async (task: MarkdownTask): Promise<Outcome> => {
    if (queue.size + queue.pending >= maxWaiting) return { kind: 'busy' };
    const queuedAt = now();
    return queue.add(() => runNow(task, queuedAt));
  };
  return {
    /**
     * Renders Markdown (CommonMark, tables, strikethrough, bare links, footnotes, tasks, HTML) as HTML that is safe in
     * a page: no scripts, styles, forms or frames; only relative addresses and those of http, https and mailto.
     */
    async render(markdown: string): Promise<Rendering> {
      const outcome = await run({ markdown });
      return outcome.kind === 'done' ? { kind: 'rendered', html: outcome.texts[0] ?? '' } : outcome;
    },
    /**
     * The beginning of each text as one line of plain text, at most 240 characters and an ellipsis; undefined when the
     * thread has no time for them. Together they count as one text.
     */
    async excerpts(texts: readonly TitledText[]): Promise<readonly string[] | undefined> {
      const outcome = await run({ excerptsOf: texts });
      return outcome.kind === 'done' ? outcome.texts : undefined;
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
    .replace(/<[^>]*(?:>|$)/g, '')
    .replace(/&(?:amp|lt|gt|quot|#39);/g, (entity) => characters.get(entity) ?? '')
    .trim()
    .replace(/\s+/g, ' ');

const characters = new Map([...entities].map(([character, name]) => [`&${name};`, character]));
