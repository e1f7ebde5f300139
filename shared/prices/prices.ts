import type { ProviderId } from '../contracts/contract.js';
import { formsOf } from './model-forms.js';
import { loadPrices, type Price, type PriceList, tierOf } from './price-lists.js';

/** A call of a model, as far as its cost depends on it. */
export interface PricedCall {
  readonly provider: ProviderId;
  /** The model that answered, or the one that was asked if the provider names none. */
  readonly model: string;
  /** The tier of service that the provider says it gave; absent means its standard one. */
  readonly tier?: string | undefined;
  readonly at: Date | number;
  readonly tokens: Tokens;
  /** How many requests it took: only the input of one of them can be a long prompt. */
  readonly requests: number;
}

/** Cached and written tokens are part of the input, those for an hour of the written ones, thinking of the output. */
export type Tokens = Readonly<
  Record<'input' | 'cached' | 'written' | 'writtenFor1h' | 'output' | 'thinking', number>
>;

/** A cost with the day of its price, which a call without tokens does not have; or why the cost is unknown. */
export type Cost =
  | { readonly nanoDollars: bigint; readonly dated: string | undefined }
  | { readonly nanoDollars: undefined; readonly unknown: 'model' | 'tier' | 'kind' | 'counts' };

export interface Prices {
  /** Rounds once, half a nano-dollar up. What has no price is unknown, and never guessed. */
  costOf(call: PricedCall): Cost;
  /** Whether a model has any price. */
  isKnown(provider: ProviderId, model: string): boolean;
}

/**
 * Opens the prices of the operator's file and of this release. For foreign providers, which stand behind the address of
 * another server, only the file counts. Throws as `loadPrices` does.
 */
export function openPrices(options: {
  file?: string | undefined;
  foreign?: ReadonlySet<ProviderId>;
}): Prices {
  const loaded = loadPrices(options.file);
  const file = toFinder(loaded.file);
  const shipped = toFinder(loaded.shipped);
  const find = (provider: ProviderId, model: string): readonly Price[] | undefined => {
    const keys = formsOf(model).map((form) => `${provider}/${form}`);
    return file(keys) ?? (options.foreign?.has(provider) ? undefined : shipped(keys));
  };
  return {
    costOf: (call) => costOf(call, find(call.provider, call.model) ?? []),
    isKnown: (provider, model) => find(provider, model) !== undefined,
  };
}

/** Finds the prices under the closest key, or else under the longest pattern, such as `openai/sim-*`, that fits one. */
function toFinder(list: PriceList) {
  const patterns = [...list.keys()].filter((key) => key.endsWith('*')).sort((a, b) => b.length - a.length);
  const fits = (pattern: string, keys: readonly string[]) =>
    keys.some((key) => key.startsWith(pattern.slice(0, -1)));
  return (keys: readonly string[]): readonly Price[] | undefined => {
    const own = keys.find((key) => list.has(key)) ?? patterns.find((pattern) => fits(pattern, keys));
    return own === undefined ? undefined : list.get(own);
  };
}

function costOf({ tier, at, tokens, requests }: PricedCall, prices: readonly Price[]): Cost {
  if (!arePossible(tokens, requests)) return unknownBy('counts');
  if (tokens.input + tokens.output === 0) return { nanoDollars: 0n, dated: undefined };
  const begun = prices.filter(({ from = '0001-01-01' }) => Date.parse(from) <= Number(at));
  if (begun.length === 0) return unknownBy('model');
  const price = begun.findLast((one) => one.tier === tierOf(tier));
  if (price === undefined) return unknownBy('tier');
  const passed = price.above.filter((step) => tokens.input > step.tokens * requests);
  const [longest = price] = passed.sort((a, b) => b.tokens - a.tokens);
  const picoDollars = sum(tokens, longest);
  if (picoDollars === undefined) return unknownBy('kind');
  return { nanoDollars: (picoDollars + 500n) / 1000n, dated: price.dated };
}

const unknownBy = <const Why>(unknown: Why) => ({ nanoDollars: undefined, unknown });

function arePossible(tokens: Tokens, requests: number): boolean {
  const { input, cached, written, writtenFor1h, output, thinking } = tokens;
  const counts = [input, cached, written, writtenFor1h, output, thinking, requests];
  if (!counts.every((count) => Number.isSafeInteger(count) && count >= 0)) return false;
  return requests > 0 && cached + written <= input && writtenFor1h <= written && thinking <= output;
}

/** In pico-dollars; undefined where a kind of the tokens has no price. */
function sum(tokens: Tokens, rates: { [kind in keyof Tokens]?: bigint | undefined }): bigint | undefined {
  const { input, cached, written, writtenFor1h, output } = tokens;
  const others = { cached, written: written - writtenFor1h, writtenFor1h, output };
  let total = 0n;
  for (const [kind, amount] of Object.entries({ input: input - cached - written, ...others })) {
    const rate = amount === 0 ? 0n : rates[kind as keyof Tokens];
    if (rate === undefined) return undefined;
    total += rate * BigInt(amount);
  }
  return total;
}
