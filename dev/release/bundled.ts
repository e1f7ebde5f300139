/**
 * Development dependencies that are shipped all the same: the console's code (dev/console.mjs), and the data that
 * shared/prices/prices.json is cut from (dev/prices.mjs).
 */
export const bundled: ReadonlySet<string> = new Set([
  '@pydantic/genai-prices',
  'preact',
  '@preact/signals',
  '@preact/signals-core',
  'uplot',
]);
