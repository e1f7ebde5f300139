import MarkdownIt, { type Token } from 'markdown-it';

const markdownIt = new MarkdownIt({ html: true });

/** Only this many characters are searched: texts that keep markdown-it busy are longer. */
const maxCharacters = 2000;
const maxTitle = 300;

/**
 * The text of the first-level heading with which a Markdown text begins; undefined when there is none, when it has no
 * words, or when it is too long for a title.
 */
export function titleOfMarkdown(markdown: string): string | undefined {
  const start = markdown.slice(0, maxCharacters).replace(/^(?:[ \t]*\r?\n)+/, '');
  if (!/^ {0,3}#[ \t]|^.+\r?\n {0,3}=/.test(start)) return undefined;
  const [opening, inline] = markdownIt.parse(start, {});
  if (opening?.tag !== 'h1') return undefined;
  const title = textOf(inline?.children ?? [])
    .replace(/\s+/g, ' ')
    .trim();
  return title === '' || [...title].length > maxTitle ? undefined : title;
}

const textOf = (tokens: readonly Token[]): string =>
  tokens
    .map(({ type, content }) => {
      if (type === 'softbreak' || type === 'hardbreak') return ' ';
      return type === 'image' || type === 'html_inline' ? '' : content;
    })
    .join('');
