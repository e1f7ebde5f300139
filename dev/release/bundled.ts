/** Development dependencies whose code is shipped all the same: in the console (dev/console.mjs), or in the API, whose queue board copies
 * its pages (dev/build.mjs). */
export const bundled: ReadonlySet<string> = new Set([
  'preact',
  '@preact/signals',
  '@preact/signals-core',
  'uplot',
  '@bull-board/api',
  '@bull-board/ui',
  'redis-info',
  'lodash',
  'valibot',
]);
