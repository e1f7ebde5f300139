/** Development dependencies whose code is shipped all the same: in the console (dev/console.mjs). */
export const bundled: ReadonlySet<string> = new Set([
  'preact',
  '@preact/signals',
  '@preact/signals-core',
  'uplot',
]);
