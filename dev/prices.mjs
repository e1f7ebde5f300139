// Prints shared/prices/prices.json: the prices at our providers, cut from the data of @pydantic/genai-prices, with a
// line for each model and day. Takes the package's module, or the data.json of its repository, and the day of the data:
// npx node dev/prices.mjs node_modules/@pydantic/genai-prices/dist/index.js 2026-09-23 > shared/prices/prices.json
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { formsOf } from '../shared/prices/model-forms.ts';

/** The source's names of our providers. */
const names = { openai: 'openai', anthropic: 'anthropic', bedrock: 'aws', vertexai: 'google' };
/** The source's names of the kinds of tokens that we count. */
const kinds = {
  input: 'input_mtok',
  cached: 'cache_read_mtok',
  written: 'cache_write_mtok',
  writtenFor1h: 'cache_write_1h_mtok',
  output: 'output_mtok',
};
/** Where tokens of images or of speech cost something else, our counts are too few to tell the price. */
const otherTokens = /^(input|cache)_(image|video)_|^output_(audio|image|video)_/;

const [file, dated = new Date().toISOString().slice(0, 10)] = process.argv.slice(2);
const findModels = await openSource(file);
const lines = Object.entries(names).flatMap(([provider, id]) =>
  findModels(id).flatMap((model) => linesOf(provider, model)),
);
const head = JSON.stringify({ source: 'https://github.com/pydantic/genai-prices (MIT)', dated });
const text = lines.map((line) => JSON.stringify(line)).join(',\n');
process.stdout.write(`${head.slice(0, -1)},"prices":[\n${text}\n]}\n`);

async function openSource(path) {
  if (path.endsWith('.json')) {
    const providers = JSON.parse(readFileSync(path, 'utf8'));
    return (id) => providers.find((one) => one.id === id).models;
  }
  const { findProvider } = await import(pathToFileURL(resolve(path)).href);
  return (id) => findProvider({ providerId: id }).models;
}

function linesOf(provider, model) {
  const dated = Array.isArray(model.prices) ? model.prices : [{ prices: model.prices }];
  if (!dated.every(({ prices }) => isCounted(prices))) return [];
  const [first, ...more] = idsOf(model);
  const id = more.length === 0 ? first : [first, ...more];
  return dated.map(({ constraint, prices }) => {
    const from = constraint?.start_date;
    if (constraint && !from)
      throw new Error(`${provider}/${first} has prices that depend on more than the day`);
    const starts = Object.values(prices).flatMap(({ tiers = [] }) => tiers.map(({ start }) => start));
    const above = [...new Set(starts)].map((tokens) => ({ tokens, ...pricesAbove(tokens, prices) }));
    return { provider, id, from, ...pricesAbove(-1, prices), ...(above.length > 0 && { above }) };
  });
}

function isCounted(prices) {
  return kinds.input in prices && !Object.keys(prices).some((name) => otherTokens.test(name));
}

/** The names that are not another one with a region, a version or a date. `regional.` is the source's own word. */
function idsOf({ id, match }) {
  const named = [id, ...equalsIn(match)];
  const ids = new Set(named.map((name) => name.replace(/^regional\.|(?:-v1)?:0$|-latest$/g, '')));
  return [...ids].filter((one) => !formsOf(one).some((form) => form !== one && ids.has(form)));
}

function equalsIn({ equals, or = [] }) {
  return equals === undefined ? or.flatMap(equalsIn) : [equals];
}

/** The prices for prompts of more than so many tokens. */
function pricesAbove(tokens, prices) {
  const known = Object.entries(kinds).filter(([, name]) => name in prices);
  return Object.fromEntries(known.map(([kind, name]) => [kind, priceAbove(tokens, prices[name])]));
}

function priceAbove(tokens, price) {
  if (typeof price === 'number') return price;
  const tiers = price.tiers.toSorted((one, other) => other.start - one.start);
  return tiers.find(({ start }) => start <= tokens)?.price ?? price.base;
}
