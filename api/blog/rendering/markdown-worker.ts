import { createHash } from 'node:crypto';
import { parentPort } from 'node:worker_threads';
import MarkdownIt, { type StateBlock, type StateCore, type Token } from 'markdown-it';
import footnotes from 'markdown-it-footnote';
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

const markdownIt = new MarkdownIt({ html: true, linkify: true }).use(footnotes);
// Each of them starts a parser of its own within the others, so no limit of depth would hold. GitHub has none either.
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

/** CommonMark, tables, strikethrough, bare links, footnotes, tasks and HTML, as HTML that can do no harm. */
function render(markdown: string): string | undefined {
  try {
    // Footnotes of several posts may be on one page, as in a feed reader.
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
 * In characters. A definition of a link can be used by every third character, which would make gigabytes of 256 KiB;
 * and an allocation of that size would end the whole process, whatever the limits of the thread are.
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

/** markdown-it leaves out what is nested in 100 levels or more. */
const deepestBlock = 98;

/** A rule of markdown-it that is asked at each block and never takes it. */
function refuseLostText({ level }: StateBlock): boolean {
  if (level > deepestBlock) throw new Refusal();
  return false;
}

/** A rule of markdown-it that draws the boxes of tasks: a form field would need rules of its own, here and in feeds. */
function markTasks({ tokens }: StateCore): void {
  for (const [index, { children }] of tokens.entries()) {
    const first = children?.[0];
    if (first?.type !== 'text' || tokens[index - 2]?.type !== 'list_item_open') continue;
    first.content = first.content.replace(/^\[([ xX])\](?=\s)/, (_, mark) => (mark === ' ' ? '☐' : '☑'));
  }
}

/** Those of footnotes, as `docId` makes them. */
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

/**
 * `id`, `name` and `class` stay out, but for the ids of footnotes: they could take the place of something of the page that
 * shows the text.
 */
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
  // The language of a code block, as highlighters and readers look for it.
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
