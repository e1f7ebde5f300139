import { existsSync, globSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

/**
 * Models that have ended, or end within weeks of 0.9: https://platform.openai.com/docs/deprecations,
 * https://cloud.google.com/vertex-ai/generative-ai/docs/learn/model-versions, and `DEPRECATED_MODELS` of Anthropic's SDK.
 */
const ended = [
  /\bgpt-([34]|5(-mini|-nano)?(?![\w.-]))/,
  /\bo3\b/,
  /\bclaude-([123]|sonnet-4-5)/,
  /\bgemini-[12]\./,
];

/** The places from which readers copy names: pages, the examples of the variables, and those of the API's own page. */
const pages = globSync(['README.md', '.env.example', 'docs/*.md', 'api/openapi/openapi-examples.ts']);

describe('the names of models that readers copy', () => {
  it.each(pages)('are of models that live: %s', (page) => {
    const names = readFileSync(page, 'utf8').split(/[\s`'"|(),=]+/);
    expect(names.filter((name) => ended.some((one) => one.test(name)))).toEqual([]);
  });

  it.each(['openai/gpt-5-mini', 'gpt-5', 'o3', 'gpt-4o', 'gpt-4.1', 'claude-sonnet-4-5', 'gemini-2.5-flash'])(
    'are looked for: %s',
    (name) => expect(ended.some((one) => one.test(name))).toBe(true),
  );

  it.each([
    'gpt-5.6-sol',
    'gpt-6-luna',
    'claude-opus-5-5',
    'claude-sonnet-4-6',
    'gemini-3.8-flash',
    'eu.amazon.nova-pro-v1:0',
  ])('may stay: %s', (name) => expect(ended.some((one) => one.test(name))).toBe(false));
});

const decisions = globSync('[0-9]*.md', { cwd: 'docs/decisions' });

describe('the status below the title of a decision', () => {
  it.each(decisions)('is one of three, and names later records that exist: %s', (decision) => {
    const [, status = ''] = readFileSync(`docs/decisions/${decision}`, 'utf8').split('\n\n');
    expect(status).toMatch(/^Status: (accepted|accepted; superseded in part by \[.+|superseded by \[.+)$/s);
    const successors = [...status.matchAll(/\]\((.+?)\)/g)].map(([, file = '']) => file);
    for (const file of successors) expect(decisions.filter((one) => one > decision)).toContain(file);
    expect(successors.length > 0).toBe(status.includes('superseded'));
  });

  it('stands in a record of its own, or in the history, for each number', () => {
    const history = readFileSync('docs/decisions/history.md', 'utf8');
    const [, replaced = ''] = /^Numbers (.+) were replaced/m.exec(history) ?? [];
    const past = [...history.matchAll(/^\*\*(\d+)\./gm)].map(([, number]) => Number(number));
    const named = [...replaced.matchAll(/\d+/g), ...decisions.map((file) => [file.slice(0, 4)])].map(Number);
    const all = [...past, ...named].toSorted((a, b) => a - b);
    expect(all).toEqual(all.map((_, place) => place + 1));
  });
});

const documentation = globSync('docs/*.md');
const read = (file: string): string => readFileSync(file, 'utf8');

/** As `wc -w` counts. */
const wordsIn = (text: string): number => text.split(/\s+/).filter((word) => word !== '').length;
const sumOf = (files: string[]): number => files.reduce((sum, file) => sum + wordsIn(read(file)), 0);

/** The lines of a page outside of its code; a link is its text, and a piece of code in a line is one word. */
function linesOf(text: string): string[] {
  const plain = text
    .replaceAll(/^```[\s\S]*?^```/gm, '')
    .replaceAll(/`[^`\n]+`/g, 'Code')
    .replaceAll(/\]\([^)]*\)/g, ']');
  return plain.split('\n').filter((line) => !line.startsWith('    '));
}

/** The sentences of a page's paragraphs and lists. A list's item that ends with a colon is one, too. */
function sentencesOf(text: string): string[] {
  const prose = linesOf(text).filter((line) => !/^(\||#|!\[)/.test(line));
  const blocks = prose.join('\n').split(/\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )/);
  return blocks
    .map((block) => block.replaceAll(/\s+/g, ' ').trim())
    .filter((block) => block !== '')
    .flatMap((block) => block.split(/(?<=[.!?][)*"]*) (?=[A-Z[(*"])/));
}

/** The cells of a page's tables. */
const cellsOf = (text: string): string[] =>
  linesOf(text)
    .filter((line) => line.startsWith('|'))
    .flatMap((row) => row.split(/(?<!\\)\|/));

const longerThan = (most: number, parts: string[]): string[] => parts.filter((part) => wordsIn(part) > most);

describe('what is counted of a page', () => {
  it('is its prose and its cells, without its code and the addresses of links', () => {
    const text = [
      '# A title of four words',
      '```sh\nnpm start -- all of it\n```',
      'One is here. Two (a [link to it](there.md#a-b)\nand `npm run all`) is longer! Three:',
      '    npm start',
      '- an item\n- another, e.g. this',
      '| a | b \\| c |\n|---|---|\n| `x y` | [d e](f.md) |',
    ].join('\n\n');
    expect(sentencesOf(text)).toEqual([
      ...['One is here.', 'Two (a [link to it] and Code) is longer!', 'Three:'],
      ...['- an item', '- another, e.g. this'],
    ]);
    expect(longerThan(1, cellsOf(text))).toEqual([' b \\| c ', ' [d e] ']);
  });
});

describe('the pages', () => {
  it.each([
    ['all pages', 25_300, documentation],
    ['the guarantees', 4500, ['docs/guarantees.md']],
    ['all decisions', 9300, globSync('docs/decisions/*.md')],
  ])('are short: %s have %d words at most', (_, most, files) => {
    expect(sumOf(files)).toBeLessThanOrEqual(most);
  });

  it.each(decisions)('have 400 words at most in a decision that is in force: %s', (decision) => {
    expect(wordsIn(read(`docs/decisions/${decision}`))).toBeLessThanOrEqual(400);
  });

  it.each(documentation)('have sentences of 30 words at most: %s', (page) => {
    expect(longerThan(30, sentencesOf(read(page)))).toEqual([]);
  });

  it.each(documentation)('have cells of 25 words at most, the guarantees of 40: %s', (page) => {
    expect(longerThan(page.endsWith('guarantees.md') ? 40 : 25, cellsOf(read(page)))).toEqual([]);
  });

  it.each(['features', 'tour', 'simulator', 'openai', 'kubernetes', 'configuration', 'tracing'])(
    'lead on from an old address in one line: %s',
    (page) => {
      const [, target = 'no link'] =
        /^.*?\]\(([\w-]+\.md)[^)]*\).*$/.exec(read(`docs/${page}.md`).trim()) ?? [];
      expect(documentation).toContain(`docs/${target}`);
    },
  );

  it.each(documentation)('link to headings that exist: %s', (page) => {
    const links = [...read(page).matchAll(/\]\(([\w./-]*\.md)?#([\w-]+)\)/g)];
    const missing = links.filter(([, file, heading = '']) => {
      const target = file === undefined ? page : `docs/${file}`;
      return !existsSync(target) || !headingsOf(read(target)).includes(heading);
    });
    expect(missing.map(([link]) => link)).toEqual([]);
  });
});

/** The addresses that GitHub gives the headings of a page. */
const headingsOf = (text: string): string[] =>
  [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
