import { parentPort } from 'node:worker_threads';
import MarkdownIt, { type StateBlock, type Token } from 'markdown-it';
import sanitizeHtml from 'sanitize-html';

/**
 * The program of the thread that renders: takes a Markdown text per message and answers each with an answer. It imports
 * no file of ours, so that it also starts from its source: Node takes the types out, but looks for no `.ts` behind `.js`.
 */

/** What the thread tells: first that it is ready, then what became of each text. */
export interface MarkdownAnswer {
  /** Undefined when it is ready, and for a text that was refused because it would fill the memory. */
  html?: string | undefined;
  /** Time of a processor that the thread has used since it was started, in milliseconds. */
  usedMs: number;
}

const markdownIt = new MarkdownIt({ html: true, linkify: true });
markdownIt.block.ruler.before('table', 'depth', refuseLostText);

parentPort?.on('message', (markdown: string) => answer(render(markdown)));
answer();

function answer(html?: string): void {
  const { user, system } = process.threadCpuUsage();
  parentPort?.postMessage({ html, usedMs: (user + system) / 1000 } satisfies MarkdownAnswer);
}

/** CommonMark, tables, strikethrough, bare links and HTML, as HTML that can do no harm. */
function render(markdown: string): string | undefined {
  try {
    const environment = {};
    const tokens = markdownIt.parse(markdown, environment);
    if (lengthOfAttributes(tokens) > longestHtml) throw new Refusal();
    const html = markdownIt.renderer.render(tokens, markdownIt.options, environment);
    return bounded(sanitizeHtml(bounded(html), allowed));
  } catch (error) {
    if (error instanceof Refusal) return undefined;
    throw error;
  }
}

class Refusal extends Error {}

/**
 * In characters. A definition of a link can be used by every third character, which would make gigabytes of 256 KiB;
 * and an allocation of that size would end the whole process, whatever the limits of the thread are.
 */
const longestHtml = 4 * 1024 * 1024;

function bounded(html: string): string {
  if (html.length > longestHtml) throw new Refusal();
  return html;
}

function lengthOfAttributes(tokens: readonly Token[]): number {
  let length = 0;
  for (const { attrs, children } of tokens) {
    for (const [, value] of attrs ?? []) length += String(value).length;
    if (children !== null) length += lengthOfAttributes(children);
  }
  return length;
}

/** markdown-it leaves out what is nested in 100 levels or more. */
const deepestBlock = 98;

/** A rule of markdown-it that is asked at each block and never takes it. */
function refuseLostText({ level }: StateBlock): boolean {
  if (level > deepestBlock) throw new Refusal();
  return false;
}

const longestStyle = 100;

const alignCell: sanitizeHtml.Transformer = (tagName, { style = '', ...attribs }) => {
  const declaration = style.length > longestStyle ? '' : style.replaceAll(/\s/g, '');
  const [, align] = /^text-align:(left|center|right);?$/.exec(declaration) ?? [];
  return { tagName, attribs: align === undefined ? attribs : { ...attribs, align } };
};

const cellAttributes = [{ name: 'align', values: ['left', 'center', 'right'] }, 'colspan', 'rowspan'];

/** `id`, `name` and `class` stay out: they could take the place of something of the page that shows the text. */
const allowed: sanitizeHtml.IOptions = {
  allowedTags: [...sanitizeHtml.defaults.allowedTags, 'img', 'del', 'ins', 'details', 'summary'],
  allowedAttributes: {
    '*': ['dir', 'lang', 'title'],
    a: ['href', 'rel'],
    img: ['src', 'alt', 'width', 'height'],
    ol: ['start', 'reversed', 'type'],
    time: ['datetime'],
    details: ['open'],
    td: cellAttributes,
    th: [...cellAttributes, 'scope'],
  },
  // The language of a code block, as highlighters and readers look for it.
  allowedClasses: { code: ['language-*'] },
  allowedSchemes: ['http', 'https', 'mailto'],
  allowedSchemesByTag: { img: ['http', 'https'] },
  allowProtocolRelative: false,
  transformTags: {
    a: sanitizeHtml.simpleTransform('a', { rel: 'nofollow noopener' }),
    td: alignCell,
    th: alignCell,
  },
};
