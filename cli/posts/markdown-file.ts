import { isMap, isScalar, isSeq, LineCounter, parseDocument } from 'yaml';
import type { Post } from '../../shared/contracts/contract.js';

/** A field of front matter: a text as it was written, null, a list of these, or an empty object for anything else. */
export interface Field {
  value: unknown;
  /** From 1. */
  line: number;
}

/** A Markdown file in two parts: `head` followed by `content` is the whole file. */
export interface MarkdownFile {
  /** Byte order mark, front matter with its delimiters, and one blank line after it; each may be missing. */
  head: string;
  content: string;
  fields: Map<string, Field>;
  /** Each with its line; they do not quote the file. */
  problems: string[];
}

/** In characters. Some YAML takes long to parse, and no front matter is this long. */
const maxYaml = 65_536;

/** Reads a file: YAML between two lines of `---` and a text, or a text that does not look like front matter. */
export function readMarkdown(text: string): MarkdownFile {
  const fields = new Map<string, Field>();
  const start = /^\uFEFF?---[ \t]*\r?\n/.exec(text)?.[0].length;
  if (start === undefined) {
    const head = text.startsWith('\uFEFF') ? '\uFEFF' : '';
    const content = text.slice(head.length);
    return { head, content, fields, problems: misplaced(content) };
  }
  const closing = /(?<=\n)---[ \t]*(?:\r?\n(?:\r?\n)?|$)/g;
  closing.lastIndex = start;
  const end = closing.exec(text)?.index;
  const unclosed = 'line 1: begins front matter that does not end with a line of ---';
  if (end === undefined) return { head: '', content: text, fields, problems: [unclosed] };
  const problems = readYaml(text.slice(start, end), fields);
  const { lastIndex } = closing;
  return { head: text.slice(0, lastIndex), content: text.slice(lastIndex), fields, problems };
}

/**
 * The beginnings of front matter as other programs write it: TOML (Hugo), JSON, names and values without their `---`
 * (Hexo, Pelican, MultiMarkdown), comments (Nikola), title blocks (pandoc, Org). To publish it as text is never meant,
 * and it may say that the post is a draft.
 */
const foreign =
  /^(?:\+\+\+|;;;|---|\{\s*"|%[ \t]|#\+|(?:<!--\s*)?\.\. |:?[\p{L}_][\p{L}\p{N}_.-]*[ \t]*:(?:\s|$))/u;

const whereText = 'where it is text, put two lines of --- before it';

function misplaced(content: string): string[] {
  const blank = /^[\s\p{Cc}\p{DI}]*/u.exec(content)?.[0] ?? '';
  if (!foreign.test(content.slice(blank.length, blank.length + 1000))) return [];
  const line = blank.split('\n').length;
  return [
    `line ${line}: looks like front matter, which has to be YAML between two lines of ---, the first at the very beginning; ${whereText}`,
  ];
}

/** Reads the names and values into `fields`, and gives the problems. Nothing is left out: any warning is a problem. */
function readYaml(yaml: string, fields: Map<string, Field>): string[] {
  if (yaml.length > maxYaml) return [`line 2: begins front matter of more than ${maxYaml} characters`];
  const lines = new LineCounter();
  const lineAt = (offset = 0) => lines.linePos(offset).line + 1;
  // The check for unique keys compares each with every other: `addField` finds them.
  const document = parseDocument(yaml, { prettyErrors: false, uniqueKeys: false, lineCounter: lines });
  const problems = [...document.errors, ...document.warnings].map(({ pos, code }) =>
    code === 'MULTIPLE_DOCS'
      ? `line ${lineAt(pos[0])}: comes after the end of the YAML; front matter ends with ---, and not with ...`
      : `line ${lineAt(pos[0])}: is not valid YAML`,
  );
  if (problems.length > 0) return [...new Set(problems)];
  // To YAML a heading between two rules is a comment, and has no contents either.
  if (document.contents === null && yaml.trim() === '') return [];
  if (!isMap(document.contents)) return [`line 2: must be names and values; ${whereText}`];
  return document.contents.items.flatMap(({ key, value }) => {
    const [name, line] = [isScalar(key) ? String(key.value) : '<<', lineAt(key.range[0])];
    if (name === '<<') return [`line ${line}: is not a name with a value`];
    if (fields.has(name)) return [`line ${line}: has a name for the second time`];
    fields.set(name, { value: isSeq(value) ? value.items.map(textOf) : textOf(value), line });
    return [];
  });
}

function textOf(node: unknown): unknown {
  if (node === null) return null;
  if (!isScalar(node)) return {};
  const { value, source } = node;
  return typeof value === 'string' || value === null ? value : (source ?? String(value));
}

/** The file of a post, with every field in a fixed order. Texts are quoted as in JSON: no YAML parser misreads them. */
export function renderMarkdown(post: Post): string {
  const { id, title, author, tags, slug, status, publishedAt, createdAt, updatedAt, version } = post;
  const list = `[${tags.map((tag) => JSON.stringify(tag)).join(', ')}]`;
  const texts = { title: JSON.stringify(title), author: JSON.stringify(author), tags: list };
  const others = { slug: JSON.stringify(slug), status, publishedAt, createdAt, updatedAt, version };
  const lines = Object.entries({ id, ...texts, ...others }).map(([name, value]) => `${name}: ${value}\n`);
  return `---\n${lines.join('')}---\n\n${post.content}`;
}
