import { globSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const page = readFileSync('docs/guarantees.md', 'utf8');

/** The rows of the page's tables whose last column is "proved by": the promise, and what is said to prove it. */
function readRows(): { promise: string; proof: string }[] {
  const rows: { promise: string; proof: string }[] = [];
  let isProved = false;
  for (const line of page.split('\n')) {
    if (!line.startsWith('|')) isProved = false;
    else if (line.includes('| proved by |')) isProved = true;
    else if (isProved && !line.startsWith('|---')) {
      const cells = line.split('|').map((cell) => cell.trim());
      rows.push({ promise: cells[1] ?? '', proof: cells.at(-2) ?? '' });
    }
  }
  return rows;
}

/** The ids of the cases of faults, each the first word of its name. */
const cases = new Set(
  globSync('test/faults/**/*.test.ts').flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(/^\s*(?:add\(|it\()?\s*['"`]([A-Z]\d+) /gm)].map(([, id]) => id),
  ),
);

/** The files of tests that a proof names, `{a,b}` being two; a pattern that matches none is given as it is. */
const filesOf = (proof: string): string[] =>
  [...proof.matchAll(/`(test\/[^`]+)`/g)].flatMap(([, pattern = '']) => {
    const found = globSync(pattern);
    return found.length > 0 ? found : [pattern];
  });

const idsOf = (proof: string): string[] =>
  proof
    .replace(/`[^`]*`/g, '')
    .split(/[,;: ()]+/)
    .flatMap((word) => rangeOf(word));

/** `R1–R10` is all between its ends. */
function rangeOf(word: string): string[] {
  const [, letter, from, to = from] = /^([A-Z])(\d+)(?:–[A-Z](\d+))?$/.exec(word) ?? [];
  if (letter === undefined) return [];
  return Array.from({ length: Number(to) - Number(from) + 1 }, (_, n) => `${letter}${Number(from) + n}`);
}

/** Whether the file is there and has tests. */
const isAlive = (file: string): boolean =>
  globSync(file).length > 0 && /\b(it|add)\b[^;]*\(/.test(readFileSync(file, 'utf8'));

describe('a promise of docs/guarantees.md', () => {
  const rows = readRows();

  it('is in a row of a table, and there are many', () => {
    expect(rows.length).toBeGreaterThan(60);
  });

  it('stands under a heading, with a dozen others at most', () => {
    const promised = page.split('\n## Promised\n')[1]?.split('\n## ')[0] ?? '';
    const [before = '', ...groups] = promised.split('\n### ');
    expect(before.trim()).toBe('');
    expect(groups.length).toBeGreaterThan(8);
    for (const group of groups)
      expect(group.split('\n| ').length, group.split('\n')[0]).toBeLessThanOrEqual(14);
  });

  it.each(rows)('has a proof: $promise', ({ proof }) => {
    const files = filesOf(proof);
    const ids = idsOf(proof);
    expect(files.length + ids.length, 'what is named to prove it').toBeGreaterThan(0);
    expect(files.filter((file) => !isAlive(file))).toEqual([]);
    expect(ids.filter((id) => !cases.has(id))).toEqual([]);
  });
});

describe('a test', () => {
  const withMark = (folder: string, mark: RegExp) =>
    globSync(`${folder}/**/*.test.ts`).filter(
      (file) => file !== 'test/guarantees.test.ts' && mark.test(readFileSync(file, 'utf8')),
    );

  it('is tried once, and none is left out for another', () => {
    expect(withMark('test', /\b(it|test|describe)\.(todo|fails|only)\b|\bretry: \d/)).toEqual([]);
  });

  it.each(['test/faults', 'test/paths'])('of %s is never skipped', (folder) => {
    expect(withMark(folder, /\.skip/)).toEqual([]);
  });
});
