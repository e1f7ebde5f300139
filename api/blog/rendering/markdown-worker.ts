import { createHash } from 'node:crypto';
import { parentPort } from 'node:worker_threads';
import MarkdownIt, { type StateBlock, type StateCore, type Token } from 'markdown-it';
import footnotes from 'markdown-it-footnote';
import sanitizeHtml from 'sanitize-html';

/**
 * The program of the rendering thread: each message is a task and gets one answer. It imports no file of this project,
 * so that it also starts from its source: Node strips types, but does not resolve `.js` to `.ts`.
 */

/** A message to the thread: a text to render as HTML, or one of which an excerpt is to be made. */
export type MarkdownTask = { readonly markdown: string } | { readonly excerptOf: TitledText };

/** The beginning of a post: a Markdown text of which no more than 1,000 characters are read, and its title. */
export interface TitledText {
  readonly markdown: string;
  readonly title: string | null;
}

/** A message of the thread: the first says that it is ready, each later one answers a task. */
export interface MarkdownAnswer {
  /** Undefined in the first message, and for a text that was refused because it would fill the memory. */
  text?: string | undefined;
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

parentPort?.on('message', (task: MarkdownTask) =>
  answer('excerptOf' in task ? excerptOf(task.excerptOf) : render(task.markdown)),
);
answer();

function answer(text?: string): void {
  const { user, system } = process.threadCpuUsage();
  parentPort?.postMessage({ text, usedMs: (user + system) / 1000 } satisfies MarkdownAnswer);
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

const plainMarkdownIt = new MarkdownIt({ html: true });

/** Only this many characters are parsed: texts that keep markdown-it busy are longer. */
const maxCharacters = 1000;
const maxExcerpt = 240;

/**
 * The beginning of a text as one line of plain text, at most 240 characters and an ellipsis. It has no code, HTML,
 * tables and images, and no headings that repeat the title. It is empty when nothing is left.
 */
function excerptOf({ markdown, title }: TitledText): string {
  const isShort = markdown.length <= maxCharacters;
  // The cut must not fall into what may be a link.
  const beginning = isShort ? markdown : markdown.slice(0, maxCharacters).replace(/\s\S*$/, '');
  const blocks = blocksOf(plainMarkdownIt.parse(beginning, {}), title?.trim());
  const text = blocks.join(' ').replace(/\s+/g, ' ').trim();
  const isWhole = isShort && text.length <= maxExcerpt;
  return isWhole ? text : `${cut(text)}…`;
}

/** The texts of paragraphs, lists, quotations and headings. Only these and tables have inline tokens. */
function blocksOf(tokens: readonly Token[], title: string | undefined): string[] {
  const blocks: string[] = [];
  for (const [index, { type, children }] of tokens.entries()) {
    const opening = tokens[index - 1];
    if (type !== 'inline' || opening === undefined || /^t[dh]$/.test(opening.tag)) continue;
    const text = textOf(children ?? []);
    if (opening.type !== 'heading_open' || text.trim() !== title) blocks.push(text);
  }
  return blocks;
}

const textOf = (tokens: readonly Token[]): string =>
  tokens
    .map(({ type, content }) => {
      if (type === 'softbreak' || type === 'hardbreak') return ' ';
      return type === 'image' || type === 'html_inline' ? '' : content;
    })
    .join('');

/** Cuts after a whole word, unless the first word is too long by itself, and never inside a character. */
function cut(text: string): string {
  const [words = ''] = /^.{0,240}(?= |$)|^.{0,240}/su.exec(text) ?? [];
  return words.trimEnd();
}
