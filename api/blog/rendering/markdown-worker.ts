import { createHash } from 'node:crypto';
import { parentPort } from 'node:worker_threads';
import MarkdownIt, { type StateBlock, type StateCore, type Token } from 'markdown-it';
import footnotes from 'markdown-it-footnote';
import sanitizeHtml from 'sanitize-html';

/**
 * The program of the rendering thread: each message is a Markdown text and gets one answer. It imports no file of this
 * project, so that it also starts from its source: Node strips types, but does not resolve `.js` to `.ts`.
 */

/** A message of the thread: the first says that it is ready, each later one answers a text. */
export interface MarkdownAnswer {
  /** Undefined in the first message, and for a text that was refused because it would fill the memory. */
  html?: string | undefined;
  /** Processor time of the thread since its start, in milliseconds. */
  usedMs: number;
}

const markdownIt = new MarkdownIt({ html: true, linkify: true }).use(footnotes);
// Each inline footnote nests another parser, which no limit of depth would count. GitHub does not support them either.
markdownIt.inline.ruler.disable('footnote_inline');
markdownIt.renderer.rules.footnote_block_open = () => '<hr>\n<ol>\n';
markdownIt.renderer.rules.footnote_block_close = () => '</ol>\n';
markdownIt.block.ruler.before('table', 'depth', refuseLostText);
markdownIt.core.ruler.after('inline', 'tasks', markTasks);

parentPort?.on('message', (markdown: string) => answer(render(markdown)));
answer();

function answer(html?: string): void {
  const { user, system } = process.threadCpuUsage();
  parentPort?.postMessage({ html, usedMs: (user + system) / 1000 } satisfies MarkdownAnswer);
}

function render(markdown: string): string | undefined {
  try {
    // A page can show footnotes of several posts, for instance in a feed reader.
    const environment = { docId: createHash('sha256').update(markdown).digest('hex').slice(0, 8) };
    const tokens = markdownIt.parse(markdown, environment);
    if (lengthOfAttributes(tokens) > maxHtml) throw new Refusal();
    const html = markdownIt.renderer.render(tokens, markdownIt.options, environment);
    return bounded(sanitizeHtml(bounded(html), allowed));
  } catch (error) {
    if (error instanceof Refusal) return undefined;
    throw error;
  }
}

class Refusal extends Error {}

/**
 * In characters. Every third character can refer to a long link definition, which would turn 256 KiB into gigabytes,
 * and an allocation of that size ends the whole process, even if the thread has lower limits.
 */
const maxHtml = 4 * 1024 * 1024;

function bounded(html: string): string {
  if (html.length > maxHtml) throw new Refusal();
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

/** markdown-it drops text that is nested 100 levels deep or more. */
const maxBlockLevel = 98;

/** A markdown-it rule that sees every block and never consumes one. */
function refuseLostText({ level }: StateBlock): boolean {
  if (level > maxBlockLevel) throw new Refusal();
  return false;
}

/** A markdown-it rule that writes task boxes as characters: pages and feeds allow no form fields. */
function markTasks({ tokens }: StateCore): void {
  for (const [index, { children }] of tokens.entries()) {
    const first = children?.[0];
    if (first?.type !== 'text' || tokens[index - 2]?.type !== 'list_item_open') continue;
    first.content = first.content.replace(/^\[([ xX])\](?=\s)/, (_, mark) => (mark === ' ' ? '☐' : '☑'));
  }
}

/** Ids of footnotes, which contain `docId`. */
const footnoteId = /^fn(?:ref)?-[0-9a-f]{8}-\d{1,6}(?::\d{1,6})?$/;

const withoutOtherIds = ({ id, ...attribs }: sanitizeHtml.Attributes): sanitizeHtml.Attributes =>
  id !== undefined && footnoteId.test(id) ? { ...attribs, id } : attribs;

const maxStyle = 100;

const alignCell: sanitizeHtml.Transformer = (tagName, { style = '', ...attribs }) => {
  const declaration = style.length > maxStyle ? '' : style.replaceAll(/\s/g, '');
  const [, align] = /^text-align:(left|center|right);?$/.exec(declaration) ?? [];
  return { tagName, attribs: align === undefined ? attribs : { ...attribs, align } };
};

const cellAttributes = [{ name: 'align', values: ['left', 'center', 'right'] }, 'colspan', 'rowspan'];

/** `id`, `name` and `class` could collide with those of the page that shows the text; ids of footnotes cannot. */
const allowed: sanitizeHtml.IOptions = {
  allowedTags: [...sanitizeHtml.defaults.allowedTags, 'img', 'del', 'ins', 'details', 'summary'],
  allowedAttributes: {
    '*': ['dir', 'lang', 'title'],
    a: ['href', 'id', 'rel'],
    li: ['id'],
    img: ['src', 'alt', 'width', 'height'],
    ol: ['start', 'reversed', 'type'],
    time: ['datetime'],
    details: ['open'],
    td: cellAttributes,
    th: [...cellAttributes, 'scope'],
  },
  // The language of a code block, which syntax highlighters and feed readers use.
  allowedClasses: { code: ['language-*'] },
  allowedSchemes: ['http', 'https', 'mailto'],
  allowedSchemesByTag: { img: ['http', 'https'] },
  allowProtocolRelative: false,
  transformTags: {
    a: (tagName, attribs) => ({
      tagName,
      attribs: { ...withoutOtherIds(attribs), rel: 'nofollow noopener' },
    }),
    li: (tagName, attribs) => ({ tagName, attribs: withoutOtherIds(attribs) }),
    td: alignCell,
    th: alignCell,
  },
};
