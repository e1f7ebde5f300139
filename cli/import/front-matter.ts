import {
  type Alias,
  type Document,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  visit,
  type YAMLMap,
} from 'yaml';

/** A Markdown file in two parts: `head` followed by `content` is the whole file. */
export interface MarkdownFile {
  /** Byte order mark, front matter with its delimiters, and one blank line after it; each may be missing. */
  head: string;
  /** The YAML between the delimiters; undefined when there is no front matter. */
  yaml: string | undefined;
  content: string;
}

/** Splits a file into front matter and content. Front matter is at the beginning, between two lines of `---`. */
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

/** The offsets at which the YAML and the line of its closing delimiter end. Only `\n` ends a line. */
function findEnd(text: string, yamlAt: number): { yaml: number; at: number } | undefined {
  const closing = /\n---[ \t]*(?:\r?\n|$)/g;
  closing.lastIndex = yamlAt - 1;
  const found = closing.exec(text);
  return found === null ? undefined : { yaml: found.index + 1, at: closing.lastIndex };
}

/**
 * Describes front matter that would be read as content: in another program's format, or in the wrong place by mistake.
 * Publishing it would be bad enough, and it may say that the post is a draft.
 */
export function findMisplaced(content: string): string | undefined {
  if (/^\s*\+\+\+[ \t]*\r?\n/.test(content)) return unread('TOML');
  if (/^\s*\{\s*"/.test(content)) return unread('JSON');
  if (/^---[ \t]*\r?\n[ \t]*["']?[a-z][\w -]*["']?:/i.test(content))
    return 'has front matter that does not end with ---';
  if (/^\s+---[ \t]*\r?\n[ \t]*["']?[a-z][\w -]*["']?:/i.test(content))
    return 'has front matter that does not begin in the first line';
  if (hidingLines.test(content)) return 'has front matter that is not between lines of ---';
  return undefined;
}

/** Lines of names and values, as Pelican writes them, one of which says that the text is not public. */
const hidingLines =
  /^(?:[a-z][\w -]*:.*\r?\n)*?(?:draft *: *(?:true|yes)|published *: *(?:false|no)|status *: *(?:draft|hidden|private))[ \t]*(?:\r?\n|$)/i;

const unread = (language: string): string =>
  `has ${language} front matter, which is not read; hugo convert toYAML makes YAML of it`;

/** The fields of front matter by name, or the problems of its lines, which are described without quoting them. */
export interface FrontMatter {
  fields: Map<string, unknown>;
  others: string[];
  problems: string[];
}

/** In characters. Some YAML takes long to parse, and no front matter is this long. */
const maxYaml = 65_536;

/** Without yaml's check for duplicate names, which compares each name with every other: `readFields` finds them. */
export const yamlOptions = { prettyErrors: false, logLevel: 'silent', uniqueKeys: false } as const;

/**
 * Reads these fields of front matter. Values are strings as they were written (`title: 1.0` is the title "1.0"), null,
 * or lists of these; an empty object stands for any other value. References (`*name`) are refused: resolving one walks
 * through everything before it.
 */
export function readFrontMatter(yaml: string, names: ReadonlySet<string>): FrontMatter {
  const found: FrontMatter = { fields: new Map(), others: [], problems: [] };
  if (yaml.length > maxYaml)
    return { ...found, problems: [`front matter must be at most ${maxYaml} characters`] };
  const lines = new LineCounter();
  const document = parseDocument(yaml, { ...yamlOptions, lineCounter: lines });
  const lineAt = (offset = 0) => `line ${lines.linePos(offset).line + 1}`;
  const wrong = document.errors.map(({ pos }) => `${lineAt(pos[0])}: is not valid YAML`);
  if (wrong.length > 0) return { ...found, problems: [...new Set(wrong)] };
  const reference = findReference(document);
  if (reference !== undefined)
    return { ...found, problems: [`${lineAt(reference.range?.[0])}: must not refer to other lines (*)`] };
  const map = document.contents;
  if (map === null) return found;
  if (!isMap(map)) return { ...found, problems: ['line 2: must be names and values'] };
  readFields(map, { names, found, lineAt });
  return found;
}

function findReference(document: Document.Parsed): Alias | undefined {
  let found: Alias | undefined;
  visit(document, {
    Alias: (_, alias) => {
      found = alias;
      return visit.BREAK;
    },
  });
  return found;
}

interface Reading {
  names: ReadonlySet<string>;
  found: FrontMatter;
  lineAt: (offset: number) => string;
}

function readFields(map: YAMLMap.Parsed, { names, found, lineAt }: Reading): void {
  const byLowerCase = new Map([...names].map((name) => [name.toLowerCase(), name]));
  const seen = new Set<string>();
  for (const { key, value } of map.items) {
    if (!isScalar(key)) continue;
    const name = String(key.value);
    const known = byLowerCase.get(name.toLowerCase());
    const line = lineAt(key.range[0]);
    if (seen.has(name)) found.problems.push(`${line}: has a name for the second time`);
    else if (known === name) found.fields.set(name, fieldOf(value));
    else if (known !== undefined) found.problems.push(`${line}: must be written ${known}`);
    else if (name === '<<') found.problems.push(`${line}: << is not read`);
    else found.others.push(name);
    seen.add(name);
  }
}

const fieldOf = (node: unknown): unknown => (isSeq(node) ? node.items.map(textOf) : textOf(node));

function textOf(node: unknown): unknown {
  if (node === null) return null;
  if (!isScalar(node)) return {};
  const { value, source } = node;
  return typeof value === 'string' || value === null ? value : (source ?? String(value));
}
