import MarkdownIt, { type StateBlock, type Token } from 'markdown-it';
import sanitizeHtml from 'sanitize-html';

/**
 * Makes a renderer from Markdown (CommonMark, tables, strikethrough, bare links, HTML) to HTML that is safe to put
 * into a page: no scripts, styles, forms or frames, addresses of http, https and mailto or relative ones. A text that
 * was built to cost seconds or gigabytes comes back as it is, preformatted.
 */
export function createMarkdownRenderer(): (markdown: string) => string {
  const markdownIt = new MarkdownIt({ html: true, linkify: true });
  markdownIt.block.ruler.before('table', 'bounds', refuseCostlyNesting);
  return (markdown) => {
    try {
      const environment = {};
      const tokens = markdownIt.parse(markdown, environment);
      if (lengthOfAttributes(tokens) > longestAttributes) throw new TooCostly();
      return sanitize(markdownIt.renderer.render(tokens, markdownIt.options, environment));
    } catch (error) {
      if (error instanceof TooCostly) return `<pre>${escapeHtml(markdown)}</pre>`;
      throw error;
    }
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
  const text = sanitizeHtml(html.slice(0, 4000), { allowedTags: [] })
    .replace(/&(?:amp|lt|gt|quot);/g, (entity) => characters.get(entity) ?? '')
    .trim()
    .replace(/\s+/g, ' ');
  const [cut = ''] = /^.{0,80}(?= |$)|^.{0,80}/su.exec(text) ?? [];
  return cut.length < text.length ? `${cut}…` : text;
}

/** The four that sanitize-html writes. */
const characters = new Map([
  ['&amp;', '&'],
  ['&lt;', '<'],
  ['&gt;', '>'],
  ['&quot;', '"'],
]);

class TooCostly extends Error {}

/** Every level of nesting reads the lines below it again: 90 levels above 130,000 lines take three seconds. */
const mostLinesTimesLevels = 2_000_000;
/** markdown-it leaves out what is nested in 100 levels or more. */
const deepestBlock = 98;
/** One definition of a link can be used by every third character, which would make gigabytes of 256 KiB. */
const longestAttributes = 4 * 1024 * 1024;
/** The parser behind sanitize-html takes a time that grows with the square of the depth. */
const deepestElement = 500;

/** A rule of markdown-it that is asked at each block and never takes it. */
function refuseCostlyNesting({ level, lineMax }: StateBlock): boolean {
  if (level > deepestBlock || level * lineMax > mostLinesTimesLevels) throw new TooCostly();
  return false;
}

function lengthOfAttributes(tokens: readonly Token[]): number {
  let length = 0;
  for (const { attrs, children } of tokens) {
    for (const [, value] of attrs ?? []) length += String(value).length;
    if (children !== null) length += lengthOfAttributes(children);
  }
  return length;
}

function sanitize(html: string): string {
  let depth = 0;
  return sanitizeHtml(html, {
    ...allowed,
    onOpenTag: () => {
      depth += 1;
      if (depth > deepestElement) throw new TooCostly();
    },
    onCloseTag: () => {
      depth -= 1;
    },
  });
}

const alignCell: sanitizeHtml.Transformer = (tagName, { style, ...attribs }) => {
  const [, align] = /^\s*text-align\s*:\s*(left|center|right)\s*;?\s*$/.exec(style ?? '') ?? [];
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
