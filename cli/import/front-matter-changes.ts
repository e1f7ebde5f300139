import { isMap, isScalar, isSeq, type Pair, type ParsedNode, parseDocument } from 'yaml';
import { splitFile, yamlOptions } from './front-matter.js';

/** A value as YAML writes it, or the items of a list. */
export type YamlText = string | readonly string[];

/** Front matter with its delimiters and the blank line behind it. */
export function renderFrontMatter(values: ReadonlyMap<string, YamlText>): string {
  return `---\n${[...values].map(([name, text]) => `${name}: ${inOneLine(text)}\n`).join('')}---\n\n`;
}

/**
 * Sets values in the front matter of a head and leaves every other byte alone; new names are appended. Front matter in
 * an unusual style can come out wrong, so the caller has to parse the result again.
 */
export function changeFrontMatter(head: string, values: ReadonlyMap<string, YamlText>): string {
  const { yaml } = splitFile(head);
  if (values.size === 0) return head;
  if (yaml === undefined) return head + renderFrontMatter(values);
  const yamlAt = head.indexOf('\n') + 1;
  const eol = head[yamlAt - 2] === '\r' ? '\r\n' : '\n';
  const map = parseDocument(yaml, yamlOptions).contents;
  const pairs = isMap(map) ? map.items : [];
  const edits = [...values].map(([name, text]) => {
    const pair = pairs.find(({ key }) => isScalar(key) && key.value === name);
    if (pair === undefined)
      return { from: yaml.length, to: yaml.length, text: `${name}: ${inOneLine(text)}${eol}` };
    return replaceValue({ yaml, eol, pair, text });
  });
  return head.slice(0, yamlAt) + applyEdits(yaml, edits) + head.slice(yamlAt + yaml.length);
}

const inOneLine = (text: YamlText): string => (typeof text === 'string' ? text : `[${text.join(', ')}]`);

interface Edit {
  from: number;
  to: number;
  text: string;
}

function applyEdits(yaml: string, edits: readonly Edit[]): string {
  let at = 0;
  let result = '';
  for (const { from, to, text } of edits.toSorted((a, b) => a.from - b.from)) {
    result += yaml.slice(at, from) + text;
    at = to;
  }
  return result + yaml.slice(at);
}

interface Replacement {
  yaml: string;
  eol: string;
  pair: Pair<ParsedNode, ParsedNode | null>;
  text: YamlText;
}

function replaceValue({ yaml, eol, pair: { key, value }, text }: Replacement): Edit {
  const keyEnd = key.range[1];
  const [from, end] = value?.range ?? [keyEnd, keyEnd];
  if (isSeq(value) && !value.flow) {
    // The range of a block list can extend beyond its last item.
    const to = (value.items.at(-1) as ParsedNode | undefined)?.range[1] ?? end;
    if (typeof text === 'string' || text.length === 0)
      return { from: keyEnd, to, text: `: ${inOneLine(text)}` };
    const indentation = yaml.slice(yaml.lastIndexOf('\n', from - 1) + 1, from);
    return { from, to, text: text.map((item) => `- ${item}`).join(eol + indentation) };
  }
  // The range of a block scalar includes the end of its last line.
  const to = from + yaml.slice(from, end).trimEnd().length;
  const before = /\s/.test(yaml[from - 1] ?? '') ? '' : ' ';
  const after = /\s/.test(yaml[to] ?? ' ') ? '' : ' ';
  return { from, to, text: before + inOneLine(text) + after };
}
