import { calcPrice, findProvider } from '@pydantic/genai-prices';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { providerIds } from '../../../shared/contracts/contract.js';
import { openPrices, type Tokens } from '../../../shared/prices/prices.js';

const theirIds = { openai: 'openai', anthropic: 'anthropic', bedrock: 'aws', vertexai: 'google' };
type Match = { equals: string } | { or: Match[] } | object;

const namedBy = (match: Match): string[] => {
  if ('equals' in match) return [match.equals];
  return 'or' in match ? match.or.flatMap(namedBy) : [];
};

/**
 * Each model of the package, by the names that it gives to it and finds it by: not `ft:gpt-4o`, which is but an id.
 * `regional.` stands for a group of regions there.
 */
const models = providerIds.flatMap((provider) => {
  const providerId = theirIds[provider];
  return (findProvider({ providerId })?.models ?? []).flatMap(({ id, match }) => {
    const names = new Set([id, ...namedBy(match)].map((name) => name.replace(/^regional\./, 'us.')));
    const found = [...names].filter((name) => calcPrice({}, name, { providerId })?.model.id === id);
    return found.length > 0 ? [{ provider, id, names: found }] : [];
  });
});

const prices = openPrices({ file: undefined });
const part = fc.oneof(fc.constant(0), fc.constant(0), fc.double({ min: 0, max: 1, noNaN: true }));
const usages = fc.record({
  at: fc.date({ min: new Date('2025-01-01'), max: new Date('2027-12-31'), noInvalidDate: true }),
  input: fc.oneof(
    fc.nat(1000),
    fc.nat(1_000_000),
    fc.constantFrom(128_000, 200_000, 271_999, 272_000, 272_001),
  ),
  output: fc.nat(128_000),
  cached: part,
  written: part,
  writtenFor1h: part,
});

type Usage = typeof usages extends fc.Arbitrary<infer T> ? T : never;

/** The shares as whole tokens. */
function tokensOf(usage: Usage): Tokens {
  const { input, output } = usage;
  const cached = Math.floor(input * usage.cached);
  const written = Math.floor((input - cached) * usage.written);
  return {
    input,
    output,
    cached,
    written,
    writtenFor1h: Math.floor(written * usage.writtenFor1h),
    thinking: 0,
  };
}

function theirPrice(provider: (typeof providerIds)[number], name: string, at: Date, tokens: Tokens) {
  const usage = {
    input_tokens: tokens.input,
    cache_read_tokens: tokens.cached,
    cache_write_tokens: tokens.written,
    cache_write_1h_tokens: tokens.writtenFor1h,
    output_tokens: tokens.output,
  };
  return calcPrice(usage, name, { providerId: theirIds[provider], timestamp: at });
}

/** Whether each kind of the tokens has a price: without one the package takes that of a wider kind. */
function hasAll(priced: object, { input, cached, written, writtenFor1h, output }: Tokens): boolean {
  const amounts = {
    input_mtok: input - cached - written,
    cache_read_mtok: cached,
    cache_write_mtok: written - writtenFor1h,
    cache_write_1h_mtok: writtenFor1h,
    output_mtok: output,
  };
  return Object.entries(amounts).every(([name, amount]) => amount === 0 || name in priced);
}

/**
 * Models of the package that we have no price of: it has none for text, which counts as 0 there, or another one for
 * images or speech, which our counts do not tell from text.
 */
const leftOut = [
  ...['openai/gpt-4o-mini-realtime-preview', 'openai/gpt-4o-realtime-preview', 'openai/gpt-audio'],
  ...['openai/gpt-audio-mini', 'openai/gpt-image-1', 'openai/gpt-image-1-mini', 'openai/gpt-image-1.5'],
  ...['openai/gpt-image-2', 'openai/gpt-realtime', 'openai/gpt-realtime-2', 'openai/gpt-realtime-mini'],
  ...['openai/gpt-transcribe', 'openai/moderation', 'openai/whisper-1'],
  ...['bedrock/amazon.nova-2-sonic-v1:0', 'bedrock/amazon.nova-sonic-v1:0'],
  ...['vertexai/gemini-2.5-flash-image', 'vertexai/gemini-3-pro-image-preview'],
  ...['vertexai/gemini-3.1-flash-image-preview', 'vertexai/gemini-3.1-flash-lite-image'],
  ...[
    'vertexai/gemini-3.1-flash-live-preview',
    'vertexai/gemini-embedding-2',
    'vertexai/gemini-live-2.5-flash',
  ],
  ...['vertexai/gemini-omni-flash-preview', 'vertexai/gemma-3', 'vertexai/gemma-3n'],
  ...['vertexai/gemma-4-26b-a4b-it', 'vertexai/gemma-4-31b-it'],
];

describe('the sums of @pydantic/genai-prices', () => {
  it('all its models of our providers -> but for those without a price of text tokens have one of ours', () => {
    const unknown = models.filter(
      ({ provider, names }) => !names.some((name) => prices.isKnown(provider, name)),
    );
    expect(unknown.map(({ provider, id }) => `${provider}/${id}`)).toEqual(leftOut);
  });

  it('every name by which it knows a model of ours -> has a price of ours', () => {
    const known = models.filter(({ provider, id }) => !leftOut.includes(`${provider}/${id}`));
    const unknown = known.flatMap(({ provider, names }) =>
      names.filter((name) => !prices.isKnown(provider, name)).map((name) => `${provider}/${name}`),
    );
    expect(unknown).toEqual([]);
  });

  it.each(providerIds)(
    '%s: each model × 200 usages -> are ours, within the rounding to nano-dollars',
    (provider) => {
      const all = models.filter(
        (one) => one.provider === provider && !leftOut.includes(`${provider}/${one.id}`),
      );
      const sample = fc.sample(usages, { seed: 49, numRuns: 200 });
      const compared = { equal: 0, unknown: 0 };
      const wrong = all.flatMap(({ names }) =>
        sample.flatMap((usage, run) => {
          const [name = '', tokens] = [names[run % names.length], tokensOf(usage)];
          const theirs = theirPrice(provider, name, usage.at, tokens);
          const ours = prices.costOf({ provider, model: name, at: usage.at, requests: 1, tokens });
          const isPriced = theirs !== null && hasAll(theirs.model_price, tokens);
          compared[isPriced ? 'equal' : 'unknown'] += 1;
          const isRight = isPriced
            ? ours.nanoDollars !== undefined &&
              Math.abs(Number(ours.nanoDollars) - theirs.total_price * 1e9) < 0.501
            : 'unknown' in ours && ours.unknown === 'kind';
          return isRight ? [] : [{ name, at: usage.at, tokens, ours, theirs: theirs?.total_price }];
        }),
      );
      expect(wrong.slice(0, 3)).toEqual([]);
      expect(compared.equal).toBeGreaterThan(all.length * 40);
    },
  );
});
