import sanitizeHtml from 'sanitize-html';
import { type MarkdownThread, startMarkdownThread } from './markdown-thread.js';

/** To be raised when the same text becomes other HTML than before: caches go by it. */
export const rendererVersion = 2;

/** What became of a text. */
export type Rendering =
  | { readonly kind: 'rendered'; readonly html: string }
  /** It costs more time or memory than it may, as it would the next time. */
  | { readonly kind: 'refused' }
  /** Too many others wait, or have waited for too long. */
  | { readonly kind: 'busy' };

/** Renders outside the thread that answers requests. */
export interface MarkdownRenderer {
  /**
   * Markdown (CommonMark, tables, strikethrough, bare links, footnotes, tasks, HTML) as HTML that is safe to put into a page: no scripts,
   * styles, forms or frames, addresses of http, https and mailto or relative ones.
   */
  render(markdown: string): Promise<Rendering>;
  /** Whatever still waits is `busy`. */
  close(): Promise<void>;
}

interface RendererLimits {
  /** Time of a processor for one text, in milliseconds. */
  maxCpuMs?: number;
  /** Texts that are being rendered or wait for it. */
  maxWaiting?: number;
  /** How long a text may wait for its turn, in milliseconds. */
  maxWaitMs?: number;
  /** How long a thread without work is kept, in milliseconds. */
  idleMs?: number;
}

/**
 * Makes a renderer with one thread, which is started for the first text. It takes one text after another; ordinary ones
 * take milliseconds, and the longest ordinary ones a tenth of a second.
 */
export function createMarkdownRenderer({
  maxCpuMs = 1000,
  maxWaiting = 32,
  maxWaitMs = 2000,
  idleMs = 60_000,
}: RendererLimits = {}): MarkdownRenderer {
  let thread: MarkdownThread | undefined;
  let idle: NodeJS.Timeout | undefined;
  let last: Promise<unknown> = Promise.resolve();
  let waiting = 0;
  let closed = false;
  const renderNow = async (markdown: string, askedAt: number): Promise<Rendering> => {
    if (closed || performance.now() - askedAt > maxWaitMs) return { kind: 'busy' };
    clearTimeout(idle);
    if (thread === undefined || thread.ended()) thread = startMarkdownThread({ maxCpuMs });
    const current = thread;
    const html = await current.render(markdown);
    idle = setTimeout(() => void current.end(), idleMs).unref();
    if (html !== undefined) return { kind: 'rendered', html };
    return { kind: closed ? 'busy' : 'refused' };
  };
  return {
    render(markdown) {
      if (waiting >= maxWaiting) return Promise.resolve({ kind: 'busy' });
      waiting += 1;
      const askedAt = performance.now();
      const rendering = last.then(() => renderNow(markdown, askedAt)).finally(() => (waiting -= 1));
      last = rendering.catch(() => {});
      return rendering;
    },
    async close() {
      closed = true;
      clearTimeout(idle);
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

/**
 * The beginning of a rendered text in one line of plain text, at most 80 characters and an ellipsis; empty when there
 * is nothing but markup.
 */
export function excerptOf(html: string): string {
  const text = textOf(html);
  const [cut = ''] = /^.{0,80}(?= |$)|^.{0,80}/su.exec(text) ?? [];
  return cut.length < text.length ? `${cut}…` : text;
}

/** Whether a rendered text begins with a heading of the first level that says the same as its title. */
export function beginsWithTitle(html: string, title: string): boolean {
  const [heading] = /^<h1(?: [^>]*)?>.*?<\/h1>/s.exec(html.slice(0, 4000)) ?? [];
  return heading !== undefined && textOf(heading) === title.trim().replace(/\s+/g, ' ');
}

/** The beginning of a rendered text in one line of plain text. */
const textOf = (html: string): string =>
  sanitizeHtml(html.slice(0, 4000), { allowedTags: [] })
    .replace(/&(?:amp|lt|gt|quot);/g, (entity) => characters.get(entity) ?? '')
    .trim()
    .replace(/\s+/g, ' ');

/** The four that sanitize-html writes. */
const characters = new Map([
  ['&amp;', '&'],
  ['&lt;', '<'],
  ['&gt;', '>'],
  ['&quot;', '"'],
]);
