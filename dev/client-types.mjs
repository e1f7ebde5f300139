// Writes test/generated/api.ts: the types of a client, generated from the OpenAPI document as the built API serves it.
// Takes the address of a document and a path to write to instead.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire, registerHooks } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const [address, target = join(root, 'test', 'generated', 'api.ts')] = process.argv.slice(2);

// openapi-typescript writes with the compiler's API, which TypeScript 7 no longer has: it gets the 5 that tsoa brings.
const require = createRequire(import.meta.url);
const compiler = pathToFileURL(require.resolve('typescript', { paths: [require.resolve('@tsoa/cli')] })).href;
registerHooks({
  resolve: (specifier, context, next) => next(specifier === 'typescript' ? compiler : specifier, context),
});

const { default: openapiTypes, astToString } = await import('openapi-typescript');
const types = astToString(await openapiTypes(address ? new URL(address) : await builtDocument()));
if (!existsSync(target) || readFileSync(target, 'utf8') !== types) {
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, types);
}

async function builtDocument() {
  const { describeApi } = await import('../dist/api/app.js');
  const { parseConfig } = await import('../dist/shared/config/config.js');
  return describeApi(parseConfig({}, 'config'));
}
