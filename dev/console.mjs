// Builds the operators' console (docs/decisions/0039-console.md): one page, one script and one style sheet, with names
// that change with what is in them, for api/site/console-router.ts.
import { join } from 'node:path';
import { build } from 'vite';

/** Writes `console/` into the folder of compiled JavaScript. */
export async function buildConsole(root, compiled) {
  await build({
    configFile: false,
    envDir: false,
    root: join(root, 'console'),
    base: '/admin/',
    publicDir: false,
    logLevel: 'warn',
    oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
    build: {
      outDir: join(compiled, 'console'),
      emptyOutDir: false,
      target: 'es2022',
      // One file, so nothing has to be loaded ahead; what is small is no data: URL, which the page's policy forbids.
      modulePreload: false,
      assetsInlineLimit: 0,
      reportCompressedSize: false,
    },
  });
}
