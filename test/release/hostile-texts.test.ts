import { once } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { MarkdownRenderer } from '../../api/blog/rendering/markdown.js';
import { unhurriedRenderer } from '../support/renderers.js';

const patient = unhurriedRenderer();
afterAll(() => patient.close());

const longest = 262_144;
const filledWith = (unit: string): string => unit.repeat(longest / unit.length);

describe('a hostile text', () => {
  let renderer: MarkdownRenderer;
  beforeEach(() => {
    renderer = unhurriedRenderer({ maxCpuMs: 200 });
  });
  afterEach(() => renderer.close());

  it.each([
    [
      'a definition that every third character uses',
      `[a]: /${'x'.repeat(131_000)}\n\n${'[a]'.repeat(43_000)}`,
    ],
    ['an image that every fourth character uses', `[a]: /${'x'.repeat(131_000)}\n\n${'![a]'.repeat(32_000)}`],
    ['quotations deeper than are kept', `${'>'.repeat(200)}a`],
    ['tables without rows', filledWith('a|b\n-|-\n')],
    ['a footnote that every fourth character uses', `[^a]: b\n\n${'[^a]'.repeat(65_000)}`],
    ['footnotes in footnotes', `${'[^a]: '.repeat(200)}b`],
  ])('takes too much memory, %s -> refused, and the next text is rendered', async (_name, markdown) => {
    expect(await patient.render(markdown)).toEqual({ kind: 'refused' });
    expect(await patient.render('a')).toEqual({ kind: 'rendered', html: '<p>a</p>\n' });
  });

  it.each([
    ['bare addresses', filledWith('//a.com/')],
    ['footnotes that do not end', `[^a]: b\n\n${'[^'.repeat(130_000)}`],
  ])('takes too much time, %s -> refused, and the next text is rendered', async (_name, markdown) => {
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
  ])('has %s -> rendered or refused, and the next text is rendered', async (_name, make) => {
    const { kind } = await renderer.render(make(4000));
    expect(['rendered', 'refused']).toContain(kind);
    expect(await renderer.render('a')).toEqual({ kind: 'rendered', html: '<p>a</p>\n' });
  });

  const numbered = (count: number, make: (number: number) => string) =>
    Array.from({ length: count }, (_, number) => make(number)).join('');

  it('is being rendered -> nothing else is held up', async () => {
    const endless = unhurriedRenderer();
    const begun = once(process, 'worker');
    const rendering = endless.render(filledWith('//a.com/'));
    await begun;
    for (let n = 0; n < 3; n += 1) await turn();
    await endless.close();
    expect(await rendering).toEqual({ kind: 'busy' });
  });
});
