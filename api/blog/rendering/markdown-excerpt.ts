import MarkdownIt, { type Token } from 'markdown-it';

const markdownIt = new MarkdownIt({ html: true });

/** Only this many characters are parsed: texts that keep markdown-it busy are longer. */
const maxCharacters = 1000;
const maxExcerpt = 240;

/**
 * The beginning of a Markdown text as one line of plain text, at most 240 characters and an ellipsis. It has no code,
 * HTML, tables and images, and no headings that repeat the title. It is empty when nothing is left.
 */
export function excerptOfMarkdown(markdown: string, title: string | null): string {
  const isShort = markdown.length <= maxCharacters;
  // The cut must not fall into what may be a link.
  const beginning = isShort ? markdown : markdown.slice(0, maxCharacters).replace(/\s\S*$/, '');
  const text = blocksOf(markdownIt.parse(beginning, {}), title?.trim()).join(' ').replace(/\s+/g, ' ').trim();
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
