import { describe, expect, it } from 'vitest';
import { ExportPaths } from '../../../cli/export/export-paths.js';

const id = '01890a5d-ac96-774b-bcce-b302099a8057';

describe('ExportPaths', () => {
  it.each([
    '/etc/a.md',
    '../a.md',
    'a/../../b.md',
    './a.md',
    'a//b.md',
    'a/',
    '',
    '.',
    '..',
    'a\0.md',
    '.md/..',
    'a.txt',
  ])('refuses %j, which leads outside or is no Markdown file', (path) => {
    expect(new ExportPaths().claim(path)).toBe(false);
  });

  it.each(['a.md', 'a/b/c d.md', 'ä/😀.md', 'a..b/c.md', '..a.md'])('takes %j, once', (path) => {
    const paths = new ExportPaths();
    expect(paths.claim(path)).toBe(true);
    expect(paths.claim(path)).toBe(false);
  });

  it('never makes one path both a file and a folder', () => {
    const paths = new ExportPaths();
    expect(paths.claim('a.md/b.md')).toBe(true);
    expect(paths.claim('a.md')).toBe(false);
    expect(paths.claim('c.md')).toBe(true);
    expect(paths.claim('c.md/d.md')).toBe(false);
  });

  it.each([
    ['A.md', 'a.md'],
    ['a/x.md', 'A/X.md'],
    ['\u00c4.md', 'A\u0308.md'],
    ['stra\u00dfe.md', 'STRASSE.md'],
    ['\u03a3.md', '\u03c2.md'],
    ['a.md/x.md', 'A.md'],
    ['A.md', 'a.md/x.md'],
  ])('takes %j or %j, which some file systems take for one', (one, other) => {
    const paths = new ExportPaths();
    expect(paths.claim(one)).toBe(true);
    expect(paths.claim(other)).toBe(false);
  });

  it('puts files into one folder however its name is written', () => {
    const paths = new ExportPaths();
    expect(paths.claim('a/x.md')).toBe(true);
    expect(paths.claim('A/y.md')).toBe(true);
  });

  it('names a post by its slug, and adds the id where that is taken, in any case of letters', () => {
    const paths = new ExportPaths();
    paths.claim('Hello.md');
    expect(paths.claimFor({ slug: 'hello', id })).toBe(`hello-${id}.md`);
    expect(paths.claimFor({ slug: 'world', id })).toBe('world.md');
  });
});
