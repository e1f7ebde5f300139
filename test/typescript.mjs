// Runs programs of test/ as they are written, outside of vitest: `node --import ./test/typescript.mjs test/x.ts`. Node
// strips their types; what they import of the product is what `npm run build` has compiled to dist/.
import { registerHooks } from 'node:module';

const root = new URL('..', import.meta.url).href;

registerHooks({
  resolve(specifier, context, nextResolve) {
    if (!/^\.\.?\//.test(specifier) || !context.parentURL?.endsWith('.ts'))
      return nextResolve(specifier, context);
    const { href } = new URL(specifier, context.parentURL);
    const isOfTests = href.startsWith(`${root}test/`);
    const file = isOfTests ? href.replace(/\.js$/, '.ts') : href.replace(root, `${root}dist/`);
    return nextResolve(file, context);
  },
});
