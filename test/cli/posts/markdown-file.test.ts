import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readMarkdown, renderMarkdown } from '../../../cli/posts/markdown-file.js';
import type { Post } from '../../../shared/contracts/contract.js';

const read = (yaml: string) => {
  const { fields, problems } = readMarkdown(`---\n${yaml}---\n`);
  const values = [...fields].map(([name, { value }]) => [name, value]);
  return { ...Object.fromEntries(values), ...(problems.length > 0 && { problems }) };
};

const time = '2026-01-31T10:00:00.000Z';
const post: Post = {
  id: '01890a5d-ac96-774b-bcce-b302099a8057',
  title: 'A "title"',
  content: 'text',
  author: 'Zoë',
  tags: ['a', 'b, c'],
  slug: '1e3',
  status: 'draft',
  publishedAt: null,
  createdAt: time,
  updatedAt: time,
  version: 3,
};

describe('a file', () => {
  it.each([
    ['front matter', '---\ntitle: a\n---\ntext\n', 'text\n'],
    ['one blank line behind it', '---\na: b\n---\n\ntext', 'text'],
    ['several blank lines, of which one is the head', '---\n---\n\n\n\ntext', '\n\ntext'],
    ['CRLF', '---\r\na: b\r\n---\r\n\r\ntext\r\n', 'text\r\n'],
    ['spaces behind the delimiters', '---  \na: b\n--- \t\ntext', 'text'],
    ['a byte order mark', '\uFEFF---\na: b\n---\ntext', 'text'],
    ['a byte order mark alone', '\uFEFFtext', 'text'],
    ['a rule further down', 'text\n---\nmore\n---\n', 'text\n---\nmore\n---\n'],
    ['no content', '---\na: b\n---', ''],
    ['front matter of blanks', '---\n \t\n\n---\ntext', 'text'],
    ['a heading between rules behind two lines of ---', '---\n---\n---\n# a\n---\n', '---\n# a\n---\n'],
    ['a longer rule within', '---\na: |\n  ---\n  ----\n---\nx', 'x'],
    ['other ends of lines', '---\na: "\u2028---\u2028"\n---\nx', 'x'],
    ['templates', '{{ x }}\n> a: b\n12:30\nhttps://a.b', '{{ x }}\n> a: b\n12:30\nhttps://a.b'],
  ])('with %s -> the head and the content', (_, text, content) => {
    const head = text.slice(0, text.length - content.length);
    expect(readMarkdown(text)).toMatchObject({ head, content, problems: [] });
  });

  const looksLike = (line: number) => [expect.stringMatching(`^line ${line}: looks like front matter, `)];
  it.each([
    ['TOML', '+++\ntitle = "x"\n+++\ntext', 1],
    ['JSON', '{\n  "title": "x"\n}\n\ntext', 1],
    ['no first ---, as Hexo writes it', 'title: x\ndate: 2020-01-01\n---\ntext', 1],
    ['no --- at all, as Pelican writes it', 'Title: x\nStatus: draft\n\ntext', 1],
    ['one such line, in any letters', 'заголовок : x\ntext', 1],
    ['a name without a value', 'tags:\n- a\n\ntext', 1],
    ['a list of fields', ':title: x\n\ntext', 1],
    ['a comment, as Nikola writes it', '<!--\n.. title: x\n-->\ntext', 1],
    ['a title block of pandoc', '% x\n% y\n\ntext', 1],
    ['a keyword of Org', '#+TITLE: x\ntext', 1],
    ['JSON between ;;;', ';;;\n"title": "x"\n;;;\ntext', 1],
    ['a blank line before it', '\uFEFF\n \n---\ndraft: true\n---\ntext', 3],
    ['a space before it', ' ---\ndraft: true\n---\ntext', 1],
    ['an invisible character before it', '\u200b---\ndraft: true\n---\ntext', 1],
  ])('that begins with front matter with %s -> is refused with the line', (_, text, line) => {
    expect(readMarkdown(text).problems).toEqual(looksLike(line));
  });

  const nameless = 'line 2: must be names and values; where it is text, put two lines of --- before it';
  const unclosed = 'line 1: begins front matter that does not end with a line of ---';
  it.each([
    ['an unclosed one', '---\ntitle: x\ntext', unclosed],
    ['a rule', '---\na rule', unclosed],
    ['a part after ...', '---\ntitle: D\n...\nFirst.\n---\nSecond.', /^line 4: comes after the end of/],
    ['a second document', '---\ntitle: a\n--- # b\ntitle: b\n---\ntext', /^line \d: comes after/],
    ['a wrong line', '---\ntitle: a\nauthor: [canary\n---\n', 'line 4: is not valid YAML'],
    ['an unknown type', '---\ntitle: !money canary\n---\n', 'line 2: is not valid YAML'],
    ['a repeated name', '---\ntitle: a\ntitle: canary\n---\n', 'line 3: has a name for the second time'],
    ['a merge', '---\na: &a {draft: true}\n<<: *a\n---\n', 'line 3: is not a name with a value'],
    ['a list as a name', '---\n? [canary]\n: b\n---\n', 'line 2: is not a name with a value'],
    ['a heading', '---\n# canary\n---\ntext', nameless],
    ['headings, with CRLF', '---\r\n## canary\r\n\r\n### b\r\n---\r\ntext', nameless],
    ['a comment behind a byte order mark', '\uFEFF---\n # canary\n---\ntext', nameless],
    ['a text', '---\ncanary\n---\n', nameless],
    ['a list', '---\n- canary\n---\n', nameless],
    ['an end of YAML', '---\n...\n---\n', nameless],
    ['an empty value', '---\n~\n---\n', nameless],
  ])('whose front matter is %s -> is refused with the line, and not quoted', (_, text, problem) => {
    const { problems } = readMarkdown(text);
    expect(problems).toEqual([typeof problem === 'string' ? problem : expect.stringMatching(problem)]);
  });

  it('texts -> as they were written, not as YAML reads them', () => {
    expect(read('title: 1.0\nauthor: yes\nstatus: 0x1F\ndate: 2020-01-01\ndraft: True\nslug:\n')).toEqual({
      ...{ title: '1.0', author: 'yes', status: '0x1F', date: '2020-01-01', draft: 'True', slug: null },
    });
    expect(read('title: "# x"\nauthor: >-\n  two\n  lines\ntags: [1.0, no, "a, b", [c]]\n')).toEqual({
      ...{ title: '# x', author: 'two lines', tags: ['1.0', 'no', 'a, b', {}] },
    });
  });

  it('front matter of more than 65,536 characters -> refused', () => {
    expect(read(`title: ${'x'.repeat(65_528)}\n`)).not.toHaveProperty('problems');
    expect(read(`title: ${'x'.repeat(65_529)}\n`)).toEqual({
      problems: ['line 2: begins front matter of more than 65536 characters'],
    });
  });
});

describe('an exported file', () => {
  it('has every field in a fixed order', () => {
    expect(renderMarkdown(post)).toBe(`---
id: 01890a5d-ac96-774b-bcce-b302099a8057
title: "A \\"title\\""
author: "Zoë"
tags: ["a", "b, c"]
slug: "1e3"
status: draft
publishedAt: null
createdAt: 2026-01-31T10:00:00.000Z
updatedAt: 2026-01-31T10:00:00.000Z
version: 3
---

text`);
  });

  it('with any texts and content -> is read back as it was', () => {
    const odd = fc.constantFrom(
      ...['yes', '1.0', '# x', '---', 'a\n---\nb', 'null', '~', '\u0085', '\r', '\uFEFF', '\u2028'],
      ...['...', '+++\n', '\n', 'title: x\n'],
    );
    const text = fc.oneof(odd, fc.string({ unit: 'binary' }));
    const given = { title: text, author: text, content: text, tags: fc.array(text) };
    fc.assert(
      fc.property(fc.record(given), (texts) => {
        const { fields, content, problems } = readMarkdown(renderMarkdown({ ...post, ...texts }));
        const values = Object.fromEntries([...fields].map(([name, { value }]) => [name, value]));
        expect({ ...values, content, problems }).toMatchObject({ ...texts, problems: [] });
      }),
    );
  });
});
