import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { headOf, renderHead } from '../../../cli/export/export-head.js';
import { readFrontMatter, splitFile } from '../../../cli/import/front-matter.js';
import type { Post } from '../../../shared/contract.js';

const time = '2026-01-31T10:00:00.000Z';
const post: Post = {
  id: '01890a5d-ac96-774b-bcce-b302099a8057',
  title: 'One',
  content: 'text',
  author: 'blog',
  tags: ['a', 'b'],
  slug: 'one',
  status: 'published',
  publishedAt: time,
  createdAt: time,
  updatedAt: time,
  version: 3,
};

/** The head that a changed post gets, whose file had this one. */
const headFor = (head: string, changes: Partial<Post> = {}, path = 'a/file.md'): string =>
  headOf({
    post: { ...post, ...changes },
    path,
    source: { path: 'a/file.md', head, isCurrent: false },
    defaultAuthor: 'blog',
  });

describe('headOf', () => {
  it('gives back the head of a file that still stands for its post', () => {
    const source = { path: 'a.md', head: '---\ntitle: [anything\n', isCurrent: true };
    expect(headOf({ post, path: 'a.md', source, defaultAuthor: 'blog' })).toBe(source.head);
  });

  it('leaves a head alone that says what the post says', () => {
    for (const head of [
      '---\ntitle: One\ntags: [a, b]\n---\n',
      '---\ntitle: One\ntags: a, b\ndraft: false\nslug: one\ndate: 2026-01-31 11:00 +0100\n---\n\n',
    ])
      expect(headFor(head)).toBe(head);
  });

  const written = [
    '\uFEFF---  ',
    '# about the post',
    'title:   One  # its title',
    '',
    'layout: {a: [1,  2]}',
    'tags: # of the post',
    '  - a  # first',
    '  - b',
    '# about what follows',
    'draft: False',
    'date:   2020-02-02',
    'version: 1.2-beta',
    '--- ',
    '',
    '',
  ].join('\n');

  const atEnd = (line: string): [string, string][] => [['--- \n', `${line}\n--- \n`]];
  it.each<[Partial<Post>, [string, string][]]>([
    [{ title: 'Two' }, [['One ', '"Two" '], ...atEnd('slug: "one"')]],
    [{ title: 'Two: "2"', slug: 'two-2' }, [['One ', '"Two: \\"2\\"" ']]],
    [{ tags: ['x'] }, [['a  # first\n  - b', '"x"']]],
    [{ tags: [] }, [[' # of the post\n  - a  # first\n  - b', ' []']]],
    [{ status: 'draft' }, [['False', 'true']]],
    [{ publishedAt: time }, [['2020-02-02', time]]],
    [{ author: 'Zoë' }, atEnd('author: "Zoë"')],
    [{ slug: 'other' }, atEnd('slug: "other"')],
    [{ updatedAt: '2026-02-01T00:00:00.000Z', version: 4 }, []],
  ])('writes %j into it and leaves every other byte alone', (changes, replacements) => {
    for (const eol of ['\n', '\r\n']) {
      const before = written.replaceAll('\n', eol);
      const after = replacements.reduce(
        (text, [from, to]) => text.replace(from.replaceAll('\n', eol), to.replaceAll('\n', eol)),
        before,
      );
      expect(headFor(before, { publishedAt: '2020-02-02T00:00:00.000Z', ...changes })).toBe(after);
    }
  });

  it.each([
    ['---\ntags: [a, b]\ntitle: # none\n---\n', '---\ntags: [a, b]\ntitle: "One" # none\n---\n'],
    ['---\ntags: [a, b]\ntitle: a\n  b\n---\n', '---\ntags: [a, b]\ntitle: "One"\n---\n'],
    ['---\ntitle: |\n  a\n\n# c\ntags: [a, b]\n---\n', '---\ntitle: "One"\n\n# c\ntags: [a, b]\n---\n'],
    ['---\ntags:\n- c\n- d\ntitle: One\n---\n', '---\ntags:\n- "a"\n- "b"\ntitle: One\n---\n'],
    ['---\ntitle: One\ntags: [c,\n  d] # two\n---\n', '---\ntitle: One\ntags: ["a", "b"] # two\n---\n'],
    ['---\n"title": !!str x\ntags: [a, b]\n---\n', '---\n"title": !!str "One"\ntags: [a, b]\n---\n'],
    ['---\n# none\n---\n', '---\n# none\ntitle: "One"\ntags: ["a", "b"]\n---\n'],
    ['\uFEFF', '\uFEFF---\ntitle: "One"\ntags: ["a", "b"]\n---\n\n'],
  ])('writes into the front matter %j', (before, after) => {
    expect(headFor(before)).toBe(after);
  });

  it.each([
    '---\n{title: One, tags: [c]}\n---\n',
    '---\n? title\n: x\n---\n',
    '---\ntitle: &a x\nauthor: *a\ntags: [*a]\n---\n',
    '---\ntitle: x\n...\n---\n',
    '---\n  title: One\n---\n',
  ])('is the post also where front matter is unusual: %j', (before) => {
    const after = headFor(before);
    const { yaml = '' } = splitFile(after);
    const { fields, problems } = readFrontMatter(yaml, new Set(['title', 'tags', 'author']));
    expect(problems).toEqual([]);
    expect(fields.get('title')).toBe('One');
    expect(fields.get('tags')).toEqual(['a', 'b']);
    expect(fields.get('author') ?? 'blog').toBe('blog');
  });

  it('names the slug where the file gets another name than it had', () => {
    expect(headFor('---\ntags: [a, b]\n---\n', { title: null, slug: 'file' })).toBe(
      '---\ntags: [a, b]\n---\n',
    );
    expect(headFor('---\ntags: [a, b]\n---\n', { title: null, slug: 'file' }, 'other.md')).toBe(
      '---\ntags: [a, b]\nslug: "file"\n---\n',
    );
  });

  it('keeps the beginning of a content out of the head', () => {
    expect(headFor('---\ntitle: One\ntags: [a, b]\n---\n', { content: '\ntext' })).toBe(
      '---\ntitle: One\ntags: [a, b]\n---\n\n',
    );
    const plain = { title: null, slug: 'file', tags: [] };
    expect(headFor('', { ...plain, content: '\ntext' })).toBe('');
    expect(headFor('', { ...plain, content: '---\ntitle: x\n---\ntext' })).toBe('---\ntitle: null\n---\n\n');
    expect(headFor('', { ...plain, content: '\uFEFFtext' })).toBe(renderHead({ ...post, ...plain }));
  });

  it('is read back as the post, with any front matter and any change', () => {
    const text = fc.oneof(
      fc.constantFrom('yes', '1.0', '# x', '---', 'a\n---\nb', 'null', '~', '\u0085', '\uFEFF', ': ', '- a'),
      fc.string({ unit: 'binary' }).map((string) => `a${string.replaceAll('\0', '')}`),
    );
    const line = fc.constantFrom(
      'title: x',
      'title:',
      'title: |\n  x\n   y',
      'tags:\n- x\n# c\n- y',
      'tags: [x, {a: b}]',
      'tags: x, y # z',
      'author: >-\n  x',
      'author: "x"',
      'draft: true',
      'status: draft',
      'status:',
      'date: 2020-01-01',
      'other: [1,\n 2]',
      '# comment',
      '',
    );
    fc.assert(
      fc.property(
        fc.uniqueArray(line, { selector: (text) => text.split(':')[0] }),
        fc.record({ title: text, author: text, tags: fc.array(text, { maxLength: 3 }) }),
        (lines, changes) => {
          const changed = { ...post, ...changes };
          const head = headFor(['---', ...lines, '---', ''].join('\n'), changes);
          const { yaml = '', content } = splitFile(head + changed.content);
          const { fields } = readFrontMatter(yaml, new Set(['title', 'author', 'tags', 'status', 'draft']));
          expect(content).toBe('text');
          expect(fields.get('title') ?? null).toBe(changed.title);
          expect(fields.get('author') ?? 'blog').toBe(changed.author);
          expect(fields.get('status') ?? 'published').toBe('published');
          expect(fields.get('draft') ?? 'false').toBe('false');
        },
      ),
    );
  });
});
