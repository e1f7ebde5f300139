import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { findProvider } from '@pydantic/genai-prices';
import { describe, expect, it } from 'vitest';
import source from '../../shared/prices/prices.json' with { type: 'json' };
import { plant } from '../support/folders.js';

const cut = (...options: string[]) =>
  execFileSync(process.execPath, ['dev/prices.mjs', ...options], { encoding: 'utf8', stdio: 'pipe' });

/** A `data.json` as in the package's repository. */
function plantData(models: readonly object[]): string {
  const providers = ['openai', 'anthropic', 'aws', 'google'].map((id) => ({ id, models }));
  return join(plant({ 'data.json': JSON.stringify(providers) }), 'data.json');
}

const linesOf = (model: object) => JSON.parse(cut(plantData([model]), '2026-09-23')).prices.slice(0, 2);

describe('dev/prices.mjs', () => {
  it('the package, or its data.json -> prints what shared/prices/prices.json has', () => {
    const data = ['openai', 'anthropic', 'aws', 'google'].map((providerId) => findProvider({ providerId }));
    const json = join(plant({ 'data.json': JSON.stringify(data) }), 'data.json');
    for (const file of ['node_modules/@pydantic/genai-prices/dist/index.js', json])
      expect(cut(file, source.dated)).toBe(readFileSync('shared/prices/prices.json', 'utf8'));
  });

  it('a model with several names -> has those that are no other one with a date, a version or a region', () => {
    const match = {
      or: [{ equals: 'm-2025-01-01' }, { equals: 'us.m' }, { equals: 'n' }, { starts_with: 'o' }],
    };
    const model = { id: 'regional.m-v1:0', match, prices: { input_mtok: 1 } };
    expect(linesOf(model)[0]).toEqual({ provider: 'openai', id: ['m', 'n'], input: 1 });
  });

  it('prices from a day on, and for long prompts -> a line for each day, with the prices above each length', () => {
    const tiers = [
      { start: 200, price: 3 },
      { start: 100, price: 2 },
    ];
    const later = { input_mtok: { base: 1, tiers }, cache_write_1h_mtok: 9, requests_kcount: 5 };
    const constraint = { start_date: '2026-01-01' };
    const prices = [{ prices: { input_mtok: 4, output_mtok: 5 } }, { constraint, prices: later }];
    expect(linesOf({ id: 'm', match: { equals: 'm' }, prices })).toEqual([
      { provider: 'openai', id: 'm', input: 4, output: 5 },
      {
        provider: 'openai',
        id: 'm',
        from: '2026-01-01',
        input: 1,
        writtenFor1h: 9,
        above: [
          { tokens: 200, input: 3, writtenFor1h: 9 },
          { tokens: 100, input: 2, writtenFor1h: 9 },
        ],
      },
    ]);
  });

  it.each([
    ['audio alone', { audio_hours: 1 }],
    ['nothing', {}],
    ['images that it takes', { input_mtok: 1, input_image_mtok: 2 }],
    ['images that it makes', { input_mtok: 1, output_image_mtok: 2 }],
    ['speech that it makes', { input_mtok: 1, output_audio_mtok: 2 }],
  ])('a model with a price for %s -> is left out', (_, prices) => {
    expect(linesOf({ id: 'm', match: { equals: 'm' }, prices })).toEqual([]);
  });

  it('prices by the time of day -> are refused', () => {
    const constraint = { start_time: '00:00:00Z', end_time: '08:00:00Z' };
    const prices = [{ prices: { input_mtok: 1 } }, { constraint, prices: { input_mtok: 2 } }];
    const file = plantData([{ id: 'm', match: { equals: 'm' }, prices }]);
    expect(() => cut(file)).toThrow('openai/m has prices that depend on more than the day');
  });
});
