import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument } from 'yaml';

/** A Markdown file in two parts, which together are the file as it was. */
export interface MarkdownFile {
  /** Byte order mark, front matter with its delimiters, and one blank line behind it; each may be missing. */
  head: string;
  /** The YAML between the delimiters; undefined when there is no front matter. */
  yaml: string | undefined;
  content: string;
}

/** Takes a file apart. Front matter stands at its beginning, between two lines of `---`. */
export function splitFile(text: string): MarkdownFile {
  const yamlAt = /^\uFEFF?---[ \t]*\r?\n/.exec(text)?.[0].length;
  const end = yamlAt === undefined ? undefined : findEnd(text, yamlAt);
  if (yamlAt === undefined || end === undefined) {
    const head = text.startsWith('\uFEFF') ? '\uFEFF' : '';
    return { head, yaml: undefined, content: text.slice(head.length) };
  }
  const [blankLine = ''] = /^\r?\n/.exec(text.slice(end.at, end.at + 2)) ?? [];
  const contentAt = end.at + blankLine.length;
  return {
    head: text.slice(0, contentAt),
    yaml: text.slice(yamlAt, end.yaml),
    content: text.slice(contentAt),
  };
}

/** Where the YAML ends, and where the line of its closing delimiter does. Only `\n` ends a line. */
function findEnd(text: string, yamlAt: number): { yaml: number; at: number } | undefined {
  const closing = /\n---[ \t]*(?:\r?\n|$)/g;
  closing.lastIndex = yamlAt - 1;
  const found = closing.exec(text);
  return found === null ? undefined : { yaml: found.index + 1, at: closing.lastIndex };
}

/**
 * What is wrong with front matter that would be taken for content: that of other programs, and what a slip has put in the
 * wrong place. To publish it as a text would be bad enough, and it may say that the post is a draft.
 */
export function findMisplaced(content: string): string | undefined {
  if (/^\s*\+\+\+[ \t]*\r?\n/.test(content)) return unread('TOML');
  if (/^\s*\{\s*"/.test(content)) return unread('JSON');
  if (/^---[ \t]*\r?\n[ \t]*["']?[a-z][\w -]*["']?:/i.test(content))
    return 'has front matter that does not end with ---';
  if (/^\s+---[ \t]*\r?\n[ \t]*["']?[a-z][\w -]*["']?:/i.test(content))
    return 'has front matter that does not begin in the first line';
  if (/^(?:[a-z][\w -]*:.*\r?\n)*?(?:draft|status|published)[ \t]*:/i.test(content))
    return 'has front matter that is not between lines of ---';
  return undefined;
}

const unread = (language: string): string =>
  `has ${language} front matter, which is not read; hugo convert toYAML makes YAML of it`;

/** What front matter says, by name, or the lines that are wrong, in words that do not quote it. */
export interface FrontMatter {
  fields: Map<string, unknown>;
  /** Names that were not asked for. */
  others: string[];
  problems: string[];
}

/**
 * Reads these fields of front matter. Values are texts as they were written (`title: 1.0` is the title "1.0"), null,
 * or lists of these; an object stands for what is none of them.
 */
export function readFrontMatter(yaml: string, names: ReadonlySet<string>): FrontMatter {
  const lines = new LineCounter();
  const document = parseDocument(yaml, { lineCounter: lines, prettyErrors: false, logLevel: 'silent' });
  const lineAt = (offset: number) => `line ${lines.linePos(offset).line + 1}`;
  const wrong = document.errors.map(({ pos }) => `${lineAt(pos[0])}: is not valid YAML`);
  const map = document.contents;
  const found: FrontMatter = { fields: new Map(), others: [], problems: [...new Set(wrong)] };
  if (wrong.length > 0 || map === null) return found;
  if (!isMap(map)) return { ...found, problems: ['line 2: must be names and values'] };
  const byLowerCase = new Map([...names].map((name) => [name.toLowerCase(), name]));
  for (const { key, value } of map.items) {
    if (!isScalar(key)) continue;
    const name = String(key.value);
    const known = byLowerCase.get(name.toLowerCase());
    if (known === name) found.fields.set(name, fieldOf(value, document));
    else if (known !== undefined) found.problems.push(`${lineAt(key.range[0])}: must be written ${known}`);
    else if (name === '<<') found.problems.push(`${lineAt(key.range[0])}: << is not read`);
    else found.others.push(name);
  }
  return found;
}

function fieldOf(node: unknown, document: Document.Parsed): unknown {
  const target = isAlias(node) ? node.resolve(document) : node;
  return isSeq(target) ? target.items.map((item) => textOf(item, document)) : textOf(target, document);
}

function textOf(node: unknown, document: Document.Parsed): unknown {
  const target = isAlias(node) ? node.resolve(document) : node;
  if (target === null) return null;
  if (!isScalar(target)) return {};
  const { value, source } = target;
  return typeof value === 'string' || value === null ? value : (source ?? String(value));
}
