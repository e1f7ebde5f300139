import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createMarkdownRenderer, type MarkdownRenderer } from '../../../../api/blog/rendering/markdown.js';

const patient = createMarkdownRenderer({ maxCpuMs: 15_000, maxWaitMs: 15_000 });
afterAll(() => patient.close());

const longest = 262_144;
const filledWith = (unit: string): string => unit.repeat(longest / unit.length);

describe('a hostile text', () => {
  let renderer: MarkdownRenderer;
  beforeEach(() => {
    renderer = createMarkdownRenderer();
  });
  afterEach(() => renderer.close());

  it.each([
    [
      'a definition that every third character uses',
      `[a]: /${'x'.repeat(131_000)}\n\n${'[a]'.repeat(43_000)}`,
    ],
    ['a definition that gets longer', `[a]: /${'&'.repeat(90)}\n\n${'[a]'.repeat(87_000)}`],
    ['an image that every fourth character uses', `[a]: /${'x'.repeat(131_000)}\n\n${'![a]'.repeat(32_000)}`],
    ['a title that every third character uses', `[a]: / "${'x'.repeat(131_000)}"\n\n${'[a]'.repeat(43_000)}`],
    ['quotations deeper than are kept', `${'>'.repeat(200)}a`],
    ['tables without rows', filledWith('a|b\n-|-\n')],
    ['a footnote that every fourth character uses', `[^a]: b\n\n${'[^a]'.repeat(65_000)}`],
    ['footnotes in footnotes', `${'[^a]: '.repeat(200)}b`],
  ])('is refused for the memory it takes: %s', async (_name, markdown) => {
    expect(await patient.render(markdown)).toEqual({ kind: 'refused' });
    expect(await patient.render('a')).toEqual({ kind: 'rendered', html: '<p>a</p>\n' });
  });

  it.each([
    ['bare addresses', filledWith('//a.com/')],
    ['elements in elements', filledWith('<b>')],
    ['footnotes that do not end', `[^a]: b\n\n${'[^'.repeat(130_000)}`],
  ])('is refused for the time it takes: %s', async (_name, markdown) => {
    expect(await renderer.render(markdown)).toEqual({ kind: 'refused' });
    expect(await renderer.render('a')).toEqual({ kind: 'rendered', html: '<p>a</p>\n' });
  });

  it.each([
    ['many footnotes', (count: number) => numbered(count, (n) => `[^${n}]: a\n\n[^${n}]\n\n`)],
    [
      'footnotes that use all others',
      (count: number) => numbered(count, (n) => `[^${n}]: a [^${n + 1}]\n\n`),
    ],
    ['inline footnotes in each other', (count: number) => `${'^['.repeat(count)}${']'.repeat(count)}`],
    ['tasks', (count: number) => '- [x] a\n'.repeat(count)],
    ['tasks in tasks', (count: number) => '- [x] '.repeat(count)],
    ['definitions alone', (count: number) => numbered(count, (n) => `[^${n}]: a\n`)],
  ])('does no harm, whatever becomes of it: %s', async (_name, make) => {
    const { kind } = await renderer.render(make(20_000).slice(0, longest));
    expect(['rendered', 'refused']).toContain(kind);
    expect(await renderer.render('a')).toEqual({ kind: 'rendered', html: '<p>a</p>\n' });
  });

  const numbered = (count: number, make: (number: number) => string) =>
    Array.from({ length: count }, (_, number) => make(number)).join('');

  it('does not take long where its pattern only looks costly', async () => {
    const blanks = ' '.repeat(60_000);
    for (const cell of [`<td style="text-align:left${blanks}x">`, `<td style="${blanks}x">`]) {
      expect(await renderer.render(`<table><tr>${cell}a`)).toMatchObject({ kind: 'rendered' });
    }
  });

  it('holds up nothing else', async () => {
    let refused = false;
    const rendering = renderer.render(filledWith('//a.com/')).then(() => {
      refused = true;
    });
    for (let turn = 0; turn < 3; turn += 1) await wait(1);
    expect(refused).toBe(false);
    await rendering;
  });
});
