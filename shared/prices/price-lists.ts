import { readFileSync, statSync } from 'node:fs';
import { z } from 'zod';
import { ConfigError } from '../config/config.js';
import { providerIds } from '../contracts/contract.js';
import { check, maxErrorsListed } from '../validation.js';
import own from './own.json' with { type: 'json' };
import source from './prices.json' with { type: 'json' };

const dollars = z.number().min(0).max(1e6).multipleOf(1e-6, { error: 'must have at most six decimals' });
/** Dollars for a million tokens; read as pico-dollars for one. */
const price = dollars.transform((value) => BigInt(Math.round(value * 1e6))).optional();
/** The kinds of tokens that have prices of their own. Thinking costs what the rest of the output does. */
const rates = { input: price, cached: price, written: price, writtenFor1h: price, output: price };
/** The prices of a whole call whose prompt has more tokens than that. */
const step = z.strictObject({ tokens: z.int().min(0), ...rates });
const id = z.string().min(1);

/** The tier of service that a provider means; a call without one is served by its standard tier. */
export const tierOf = (name = 'standard'): string =>
  name.toLowerCase().replace(/^(default|on_demand)$/, 'standard');

/** A line of `PRICES_FILE`, and of the lists of this release. */
const line = z.strictObject({
  provider: z.enum(providerIds),
  id: z.union([id, z.array(id)], { error: 'must be a name or a list of names' }),
  from: z.iso.date({ error: 'must be a day such as 2026-12-01' }).optional(),
  tier: z.string().optional().transform(tierOf),
  ...rates,
  above: z.array(step).default([]),
  pages: z.array(z.url()).optional(),
});
const lines = z.array(line);

/** A line with the day from which it holds, or else the day of its list. */
export interface Price extends z.output<typeof line> {
  readonly dated: string;
}

/** The prices of models by `provider/id`, each model's oldest first. */
export type PriceList = ReadonlyMap<string, readonly Price[]>;

/**
 * The prices of the operator's file, and those of this release, ours and those of @pydantic/genai-prices. Throws
 * `ConfigError` for a file that cannot be read or has other lines than these.
 */
export function loadPrices(path: string | undefined): { file: PriceList; shipped: PriceList } {
  return {
    file: path === undefined ? new Map() : readList(path),
    shipped: new Map([source.prices, own].flatMap((list) => [...toList(lines.parse(list), source.dated)])),
  };
}

function readList(path: string): PriceList {
  const { data, errors } = check(lines, readJson(path));
  if (data !== undefined) return toList(data, statSync(path).mtime.toISOString().slice(0, 10));
  const problems = errors.map(({ pointer, detail }) => `PRICES_FILE${pointer}: ${detail}`);
  throw new ConfigError(problems.slice(0, maxErrorsListed));
}

function readJson(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    throw new ConfigError(['PRICES_FILE: must be the path of a JSON file']);
  }
}

function toList(lines: readonly z.output<typeof line>[], day: string): PriceList {
  const list = new Map<string, Price[]>();
  for (const line of lines.toSorted((a, b) => (a.from ?? '').localeCompare(b.from ?? '')))
    for (const id of [line.id].flat()) {
      const key = `${line.provider}/${id}`;
      list.set(key, [...(list.get(key) ?? []), { ...line, dated: line.from ?? day }]);
    }
  return list;
}
