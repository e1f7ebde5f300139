import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { ProviderId } from '../../../shared/contracts/contract.js';
import { openPrices, type PricedCall, type Tokens } from '../../../shared/prices/prices.js';
import { plant } from '../../support/folders.js';

/** A dollar for a million tokens is 1,000 nano-dollars for one. */
const lines = [
  { provider: 'openai', id: 'm', input: 2, cached: 0.2, written: 2.5, writtenFor1h: 4, output: 10 },
  { provider: 'openai', id: 'm', tier: 'Priority', input: 4, output: 20 },
  {
    provider: 'openai',
    id: 'long',
    input: 1,
    written: 3,
    output: 2,
    above: [
      { tokens: 100, input: 5, written: 6, output: 7 },
      { tokens: 1000, input: 50, output: 70 },
    ],
  },
  { provider: 'openai', id: 'dated', from: '2026-07-01', input: 3, output: 3 },
  { provider: 'openai', id: 'dated', from: '2026-01-01', input: 1, output: 1 },
  { provider: 'openai', id: 'tiny', input: 0.000_001, output: 0.0005 },
  { provider: 'openai', id: 'exact', input: 8.2, cached: 0.1, output: 0.2 },
  { provider: 'openai', id: 'free', input: 0, output: 0 },
  { provider: 'openai', id: 'group-*', input: 8 },
  { provider: 'openai', id: 'group-of-*', input: 9 },
  { provider: 'openai', id: 'group-of-one', input: 10 },
];

/** Prices of a file with these lines. */
function pricesOf(list: readonly object[], foreign: readonly ProviderId[] = []) {
  const file = join(plant({ 'prices.json': JSON.stringify(list) }), 'prices.json');
  return openPrices({ file, foreign: new Set(foreign) });
}

type Changes = Partial<Omit<PricedCall, 'tokens'>> & Partial<Tokens>;
const counts = { input: 0, cached: 0, written: 0, writtenFor1h: 0, output: 0, thinking: 0 };

function callOf({
  provider = 'openai',
  model = 'm',
  tier,
  at,
  requests = 1,
  ...tokens
}: Changes): PricedCall {
  const when = at ?? Date.parse('2026-11-30');
  return { provider, model, tier, at: when, requests, tokens: { ...counts, ...tokens } };
}

const costOf = (changes: Changes) => pricesOf(lines).costOf(callOf(changes));
const nanoDollarsOf = (changes: Changes) => costOf(changes).nanoDollars;

describe('costOf', () => {
  it.each<[string, Changes, bigint]>([
    ['input and output', { input: 1000, output: 100 }, 3_000_000n],
    ['input that was read from the cache', { input: 1000, cached: 900 }, 100n * 2000n + 900n * 200n],
    ['input that was written to it', { input: 1000, written: 400 }, 600n * 2000n + 400n * 2500n],
    [
      'some of it for an hour',
      { input: 1000, cached: 100, written: 400, writtenFor1h: 300 },
      500n * 2000n + 100n * 200n + 100n * 2500n + 300n * 4000n,
    ],
    ['thinking, which is part of the output', { output: 100, thinking: 90 }, 1_000_000n],
    [
      'the most tokens that a count can have',
      { input: Number.MAX_SAFE_INTEGER },
      18_014_398_509_481_982_000n,
    ],
    ['a model that costs nothing', { model: 'free', input: 5, output: 5 }, 0n],
    ['no tokens, of a model without a price', { model: 'nobodys' }, 0n],
    // 8.2 times a million is 8199999.999999999 in floating point.
    ['prices that floating point misses', { model: 'exact', input: 1001, cached: 1, output: 1 }, 8_200_300n],
  ])('%s -> %j cost the sum of its kinds', (_, changes, expected) => {
    expect(nanoDollarsOf(changes)).toBe(expected);
  });

  it.each<[Changes, bigint]>([
    [{ input: 499 }, 0n],
    [{ input: 500 }, 1n],
    [{ input: 1499 }, 1n],
    // Half a nano-dollar twice.
    [{ output: 1 }, 1n],
    [{ output: 2 }, 1n],
    [{ input: 499, output: 1 }, 1n],
  ])('parts of nano-dollars, %j -> are rounded once, and up from the middle', (changes, expected) => {
    expect(nanoDollarsOf({ model: 'tiny', ...changes })).toBe(expected);
  });

  it.each<[Changes, bigint]>([
    [{ input: 100, output: 1 }, 102_000n],
    [{ input: 101, output: 1 }, 101n * 5000n + 7000n],
    [{ input: 101, written: 101 }, 101n * 6000n],
    [{ input: 1001, output: 1 }, 1001n * 50_000n + 70_000n],
    // 200 tokens in two requests are 100 each.
    [{ input: 200, requests: 2 }, 200_000n],
    [{ input: 201, requests: 2 }, 201n * 5000n],
  ])('a prompt of a length, %j -> the whole call has the price for that length', (changes, expected) => {
    expect(nanoDollarsOf({ model: 'long', ...changes })).toBe(expected);
  });

  it.each([
    ['2026-01-01T00:00:00.000Z', 1000n, '2026-01-01'],
    ['2026-06-30T23:59:59.999Z', 1000n, '2026-01-01'],
    ['2026-07-01T00:00:00.000Z', 3000n, '2026-07-01'],
    ['2030-01-01T00:00:00.000Z', 3000n, '2026-07-01'],
  ])('a call at %s -> has the price of that day, in UTC', (time, nanoDollars, dated) => {
    for (const at of [new Date(time), Date.parse(time)])
      expect(costOf({ model: 'dated', input: 1, at })).toEqual({ nanoDollars, dated });
  });

  it.each([undefined, 'default', 'standard', 'on_demand', 'ON_DEMAND'])(
    'the tier %s -> is the standard one',
    (tier) => {
      expect(nanoDollarsOf({ input: 1, tier })).toBe(2000n);
    },
  );

  it('a tier with prices of its own -> has these', () => {
    expect(nanoDollarsOf({ input: 1, output: 1, tier: 'priority' })).toBe(24_000n);
    expect(costOf({ input: 1, cached: 1, tier: 'priority' })).toEqual({
      nanoDollars: undefined,
      unknown: 'kind',
    });
  });

  it.each<[string, Changes]>([
    ['model', { model: 'mm', input: 1 }],
    ['model', { provider: 'anthropic', input: 1 }],
    ['model', { model: 'dated', input: 1, at: Date.parse('2025-12-31T23:59:59.999Z') }],
    ['model', { model: 'dated', input: 1, at: Number.NaN }],
    ['model', { model: '', input: 1 }],
    ['model', { model: '__proto__', input: 1 }],
    ['tier', { input: 1, tier: 'flex' }],
    ['tier', { input: 1, tier: 'batch' }],
    ['tier', { model: 'long', input: 1, tier: 'priority' }],
    ['kind', { model: 'long', input: 10, cached: 1 }],
    ['kind', { model: 'long', input: 10, written: 1, writtenFor1h: 1 }],
    ['kind', { model: 'long', input: 1001, written: 1 }],
    ['kind', { model: 'group-1', output: 1 }],
  ])('what has no price, its %s: %j -> is unknown, and not 0', (unknown, changes) => {
    expect(costOf(changes)).toEqual({ nanoDollars: undefined, unknown });
  });

  const odd = [-1, 0.5, 1e300, 2 ** 53, Number.NaN, Number.POSITIVE_INFINITY, '1', null];
  it.each<[Changes]>([
    ...Object.keys(counts).flatMap((name) => odd.map((count) => [{ [name]: count } as Changes] as [Changes])),
    ...[0, ...odd].map((requests) => [{ input: 1, requests } as Changes] as [Changes]),
    [{ input: 10, cached: 11 }],
    [{ input: 10, cached: 6, written: 5 }],
    [{ input: 10, written: 5, writtenFor1h: 6 }],
    [{ output: 10, thinking: 11 }],
    [{ input: 2 ** 53 - 1, cached: 2 ** 53 - 1, written: 1 }],
    [{ model: 'nobodys', input: -1 }],
  ])('counts that cannot be, %j -> make the cost unknown', (changes) => {
    expect(costOf(changes)).toEqual({ nanoDollars: undefined, unknown: 'counts' });
  });
});

describe('the prices of the file', () => {
  const at = Date.parse('2026-11-30');
  const own = [{ provider: 'openai', id: 'gpt-5', tier: 'flex', input: 7 }];
  const cost = (model: string, tier?: string, list = own) =>
    pricesOf(list).costOf(callOf({ model, tier, input: 1, at })).nanoDollars;

  it('a line for an id -> replaces all prices of that id, and of its snapshots, and no others', () => {
    expect(cost('gpt-5', 'flex')).toBe(7000n);
    expect(cost('gpt-5-2025-08-07', 'flex')).toBe(7000n);
    expect(cost('gpt-5')).toBeUndefined();
    expect(cost('gpt-5-mini')).toBe(250n);
    expect(cost('gpt-5', undefined, [])).toBe(1250n);
  });

  it('an id that ends with * -> stands for all names that begin so, the closest one first', () => {
    expect(nanoDollarsOf({ model: 'group-1', input: 1 })).toBe(8000n);
    expect(nanoDollarsOf({ model: 'group-of-1', input: 1 })).toBe(9000n);
    expect(nanoDollarsOf({ model: 'group-of-one', input: 1 })).toBe(10_000n);
    expect(nanoDollarsOf({ model: 'group', input: 1 })).toBeUndefined();
    expect(
      cost('gpt-5-mini', undefined, [{ provider: 'openai', id: 'gpt-*', tier: 'standard', input: 1 }]),
    ).toBe(1000n);
  });

  it('a provider behind the address of another server -> its models cost what the file says alone', () => {
    const prices = pricesOf(lines, ['openai']);
    expect(prices.isKnown('openai', 'm')).toBe(true);
    expect(prices.isKnown('openai', 'gpt-5')).toBe(false);
    expect(prices.costOf(callOf({ model: 'gpt-5', input: 1 }))).toMatchObject({ unknown: 'model' });
    expect(prices.isKnown('anthropic', 'claude-opus-5-5')).toBe(true);
  });
});

describe('the prices of this release', () => {
  const prices = openPrices({ file: undefined });

  it.each<[ProviderId, string, boolean]>([
    ['openai', 'gpt-6.2-sol', true],
    ['openai', 'gpt-6.2-sol-2026-11-17', true],
    ['openai', 'claude-opus-5-5', false],
    ['anthropic', 'claude-haiku-5-5', true],
    ['anthropic', 'claude-opus-9', false],
    ['bedrock', 'us.anthropic.claude-opus-5-5', true],
    ['vertexai', 'gemini-4-argon', true],
    ['vertexai', 'sim-echo', false],
  ])('%s, %s -> is known: %s', (provider, model, expected) => {
    expect(prices.isKnown(provider, model)).toBe(expected);
  });

  const [november, december] = [Date.parse('2026-11-30T23:59:59Z'), Date.parse('2026-12-01T00:00:00Z')];
  it.each<[Changes, bigint, string]>([
    [{ model: 'gpt-5', input: 1000, cached: 1000 }, 125_000n, '2026-09-23'],
    [{ model: 'gpt-6.2-sol', input: 272_000, output: 1 }, 272_000n * 2000n + 10_000n, '2026-11-17'],
    [{ model: 'gpt-6.2-sol', input: 272_001, output: 1 }, 272_001n * 4000n + 15_000n, '2026-11-17'],
    [{ provider: 'vertexai', model: 'gemini-4-argon', input: 1, at: november }, 2000n, '2026-09-30'],
    [{ provider: 'vertexai', model: 'gemini-4-argon', input: 1, at: december }, 4000n, '2026-12-01'],
    // Bedrock asks for less where calls may go to any region.
    [{ provider: 'bedrock', model: 'anthropic.claude-opus-5-5', input: 1 }, 4400n, '2026-09-23'],
    [{ provider: 'bedrock', model: 'eu.anthropic.claude-opus-5-5', input: 1 }, 4400n, '2026-09-23'],
    [{ provider: 'bedrock', model: 'global.anthropic.claude-opus-5-5', input: 1 }, 4000n, '2026-09-23'],
  ])('%j -> costs %s, by the price of %s', (changes, nanoDollars, dated) => {
    expect(prices.costOf(callOf(changes))).toEqual({ nanoDollars, dated });
  });

  it('a model that may run in any region, with a price for one region alone -> is unknown', () => {
    expect(prices.isKnown('bedrock', 'eu.amazon.nova-lite-v1:0')).toBe(true);
    expect(prices.isKnown('bedrock', 'global.amazon.nova-lite-v1:0')).toBe(false);
  });
});
