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

/** What front matter says, by name, or the lines that are wrong, in words that do not quote it. */
export interface FrontMatter {
  fields: Map<string, unknown>;
  problems: string[];
}

/**
 * Reads these fields of front matter. Values are texts as they were written (`title: 1.0` is the title "1.0"), null,
 * or lists of these; an object stands for what is none of them.
 */
export function readFrontMatter(yaml: string, names: ReadonlySet<string>): FrontMatter {
  const lines = new LineCounter();
  const document = parseDocument(yaml, { lineCounter: lines, prettyErrors: false, logLevel: 'silent' });
  const wrong = document.errors.map(({ pos }) => `line ${lines.linePos(pos[0]).line + 1}: is not valid YAML`);
  const map = document.contents;
  const fields = new Map<string, unknown>();
  if (wrong.length > 0 || map === null) return { fields, problems: [...new Set(wrong)] };
  if (!isMap(map)) return { fields, problems: ['line 2: must be names and values'] };
  for (const { key, value } of map.items) {
    const name = isScalar(key) ? key.value : undefined;
    if (typeof name === 'string' && names.has(name)) fields.set(name, fieldOf(value, document));
  }
  return { fields, problems: [] };
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
