import { globSync, readFileSync } from 'node:fs';
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
