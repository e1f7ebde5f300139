import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { renderHead } from '../../../cli/export/export-head.js';
import { readFrontMatter, splitFile } from '../../../cli/import/front-matter.js';
import type { Post } from '../../../shared/contract.js';
import { growth, linear } from '../../support/growth.js';

const names = new Set(['title', 'author', 'tags', 'slug', 'status', 'draft', 'date', 'version']);
const read = (yaml: string) => {
  const { fields, problems } = readFrontMatter(yaml, names);
  return { ...Object.fromEntries(fields), ...(problems.length > 0 && { problems }) };
};

describe('splitFile', () => {
  it.each([
    ['front matter', '---\ntitle: a\n---\ntext\n', '---\ntitle: a\n---\n', 'text\n'],
    ['one blank line behind it', '---\na: b\n---\n\ntext', '---\na: b\n---\n\n', 'text'],
    ['several blank lines, of which one is the head', '---\n---\n\n\n\ntext', '---\n---\n\n', '\n\ntext'],
    ['CRLF', '---\r\na: b\r\n---\r\n\r\ntext\r\n', '---\r\na: b\r\n---\r\n\r\n', 'text\r\n'],
    ['spaces behind the delimiters', '---  \na: b\n--- \t\ntext', '---  \na: b\n--- \t\n', 'text'],
    ['a byte order mark', '\uFEFF---\na: b\n---\ntext', '\uFEFF---\na: b\n---\n', 'text'],
    ['a byte order mark alone', '\uFEFFtext', '\uFEFF', 'text'],
    ['nothing', 'text', '', 'text'],
    ['a delimiter that is not closed', '---\ntext', '', '---\ntext'],
    ['a rule further down', 'text\n---\nmore\n---\n', '', 'text\n---\nmore\n---\n'],
    ['no content', '---\na: b\n---', '---\na: b\n---', ''],
    ['a longer rule within', '---\na: |\n  ---\n----\n---\nx', '---\na: |\n  ---\n----\n---\n', 'x'],
    ['other ends of lines', '---\na: "\u2028---\u2028"\n---\nx', '---\na: "\u2028---\u2028"\n---\n', 'x'],
  ])('%s -> the head and the content', (_, text, head, content) => {
    expect(splitFile(text)).toMatchObject({ head, content });
  });
});

describe('readFrontMatter', () => {
  it('texts -> as they were written, not as YAML reads them', () => {
    expect(read('title: 1.0\nauthor: yes\nstatus: 0x1F\ndate: 2020-01-01\ndraft: True\n')).toEqual({
      title: '1.0',
      author: 'yes',
      status: '0x1F',
      date: '2020-01-01',
      draft: 'True',
    });
    expect(read('title: "# x"\nauthor: >-\n  two\n  lines\ntags: [1.0, no, "a, b"]\n')).toEqual({
      title: '# x',
      author: 'two lines',
      tags: ['1.0', 'no', 'a, b'],
    });
  });

  it.each([
    'title: x\ntags: &a [x, *a]\n',
    'layout: &a x\nauthor: *a\n',
    'layout: &a x\nother: {x: [[*a]]}\n',
  ])('a reference, wherever it is -> refused: %j', (yaml) => {
    expect(read(yaml).problems).toEqual(['line 3: must not refer to other lines (*)']);
  });

  it('front matter of more than 65,536 characters -> refused', () => {
    expect(read(`title: ${'x'.repeat(65_529)}`)).not.toHaveProperty('problems');
    expect(read(`title: ${'x'.repeat(65_530)}`)).toEqual({
      problems: ['front matter must be at most 65536 characters'],
    });
  });

  it.each<[string, characters: number, (count: number) => string]>([
    ['references', 32_000, (count) => `a: &a x\ntags: [${'*a,'.repeat(count)}]\n`],
    [
      'references in references',
      32_000,
      (count) => `a: &a [${'*a,'.repeat(count)}]\ntags: [${'*a,'.repeat(count)}]\n`,
    ],
    ['anchors', 32_000, (count) => `tags: [${'&a x,'.repeat(count)}]\n`],
    ['names', 16_000, (count) => Array.from({ length: count }, (_, number) => `a${number}: 1\n`).join('')],
    ['nested lists', 16_000, (count) => `tags: ${'['.repeat(count)}${']'.repeat(count)}\n`],
    ['unclosed lists', 4000, (count) => `tags: ${'['.repeat(count)}\n`],
    ['errors', 4000, (count) => `${']'.repeat(count)}\n`],
  ])('long front matter of %s -> the cost grows with its length', async (_, characters, make) => {
    const upTo = Math.floor(characters / (make(1001).length - make(1000).length));
    const prepare = (count: number) => {
      const yaml = make(count);
      return () => read(yaml);
    };
    expect(await growth(prepare, { upTo })).toBeLessThanOrEqual(linear);
  });

  it('a line that is wrong -> is named and not quoted', () => {
    expect(read('title: a\nauthor: [canary\n')).toEqual({ problems: ['line 4: is not valid YAML'] });
    expect(read('title: a\ntitle: canary\n').problems).toEqual(['line 3: has a name for the second time']);
    expect(read('canary\n')).toEqual({ problems: ['line 2: must be names and values'] });
  });
});

describe('renderHead', () => {
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

  it('a post -> every field in a fixed order', () => {
    expect(renderHead(post)).toBe(`---
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

`);
  });

  it('any texts and content -> read back as they were', () => {
    const odd = fc.constantFrom(
      'yes',
      '1.0',
      '# x',
      '---',
      'a\n---\nb',
      'null',
      '~',
      '\u0085',
      '\r',
      '\uFEFF',
      '\u2028',
    );
    const text = fc.oneof(odd, fc.string({ unit: 'binary' }));
    const given = { title: text, author: text, content: text, tags: fc.array(text) };
    fc.assert(
      fc.property(fc.record(given), (texts) => {
        const { yaml = '', content } = splitFile(renderHead({ ...post, ...texts }) + texts.content);
        expect({ ...read(yaml), content }).toMatchObject(texts);
      }),
    );
  });
});
