import { utimesSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ConfigError } from '../../../shared/config/config.js';
import own from '../../../shared/prices/own.json' with { type: 'json' };
import { openPrices } from '../../../shared/prices/prices.js';
import source from '../../../shared/prices/prices.json' with { type: 'json' };
import { plant } from '../../support/folders.js';

const pathOf = (text: string) => join(plant({ 'prices.json': text }), 'prices.json');

function problemsOf(file: string): readonly string[] {
  try {
    openPrices({ file });
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

describe('PRICES_FILE', () => {
  const good = { provider: 'openai', id: 'm', input: 1 };

  it.each<[unknown, string]>([
    [{}, ': must be an array'],
    [[{ id: 'm' }], '/0/provider: must be one of: openai, anthropic, bedrock, vertexai'],
    [
      [good, { ...good, provider: 'azure' }],
      '/1/provider: must be one of: openai, anthropic, bedrock, vertexai',
    ],
    [[{ provider: 'openai' }], '/0/id: must be a name or a list of names'],
    [[{ ...good, id: ['m', ''] }], '/0/id/1: must not be empty'],
    [[{ ...good, input: '1' }], '/0/input: must be a number'],
    [[{ ...good, output: -1 }], '/0/output: must be at least 0'],
    [[{ ...good, cached: 1e7 }], '/0/cached: must be at most 1000000'],
    [[{ ...good, written: 0.000_000_1 }], '/0/written: must have at most six decimals'],
    [[{ ...good, from: '2026-02-30' }], '/0/from: must be a day such as 2026-12-01'],
    [[{ ...good, tier: 1 }], '/0/tier: must be a string'],
    [[{ ...good, above: [{ input: 1 }] }], '/0/above/0/tokens: is required'],
    [[{ ...good, above: [{ tokens: 1.5 }] }], '/0/above/0/tokens: must be a whole number'],
    [
      [{ ...good, above: [{ tokens: 1, price: 1 }] }],
      '/0/above/0: must have no other fields than the documented ones',
    ],
    [[{ ...good, ouput: 1 }], '/0: must have no other fields than the documented ones'],
  ])('%j -> the problem is %s', (list, problem) => {
    expect(problemsOf(pathOf(JSON.stringify(list)))).toEqual([`PRICES_FILE${problem}`]);
  });

  it('several problems -> each is named, up to twenty', () => {
    const bad = Array.from({ length: 30 }, () => ({ ...good, input: -1 }));
    expect(problemsOf(pathOf(JSON.stringify(bad)))).toHaveLength(20);
  });

  it.each([
    ['no JSON', () => pathOf('[{"provider":')],
    ['not there', () => join(plant({}), 'prices.json')],
    ['a folder', () => plant({})],
  ])('%s -> the problem says what it must be', (_, file) => {
    expect(problemsOf(file())).toEqual(['PRICES_FILE: must be the path of a JSON file']);
  });

  it('a line without a day -> the price has the day of the file', () => {
    const file = pathOf(JSON.stringify([good, { ...good, id: 'later', from: '2026-11-01' }]));
    utimesSync(file, 0, Date.parse('2026-10-09T12:00:00Z') / 1000);
    const prices = openPrices({ file });
    const tokens = { input: 1, cached: 0, written: 0, writtenFor1h: 0, output: 0, thinking: 0 };
    const dayOf = (model: string) =>
      prices.costOf({ provider: 'openai', model, at: Date.parse('2026-11-30'), requests: 1, tokens });
    expect(dayOf('m')).toEqual({ nanoDollars: 1000n, dated: '2026-10-09' });
    expect(dayOf('later')).toEqual({ nanoDollars: 1000n, dated: '2026-11-01' });
    expect(dayOf('gpt-5')).toMatchObject({ dated: source.dated });
  });
});

describe('the lists of this release', () => {
  const keysOf = (list: readonly { provider: string; id: string | string[]; from?: string }[]) =>
    list.flatMap(({ provider, id, from }) => [id].flat().map((one) => `${provider}/${one} ${from}`));

  it('have one price of an id from a day', () => {
    for (const keys of [keysOf(source.prices), keysOf(own)]) expect(keys).toEqual([...new Set(keys)]);
  });

  it('own.json -> has for each price the day from which it holds, and the pages that say so', () => {
    expect(own.filter(({ from, pages }) => !from || pages.length === 0)).toEqual([]);
    expect(own.every((line) => line.input > 0 && line.output > 0)).toBe(true);
  });

  it('own.json -> has no model that the source has as well', () => {
    const known = new Set(keysOf(source.prices).map((key) => key.split(' ')[0]));
    expect(keysOf(own).filter((key) => known.has(key.split(' ')[0] ?? ''))).toEqual([]);
  });
});
