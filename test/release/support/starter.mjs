// Starts the embedded PostgreSQL in the given folder, reports it as one line of JSON, and stays until it reads `stop`
// on its standard input, or killed. Plain JavaScript that runs the TypeScript sources as they are.
import { once } from 'node:events';
import { registerHooks } from 'node:module';

const sources = new URL('../../../dev/', import.meta.url).href;
registerHooks({
  resolve(specifier, context, next) {
    const ours = specifier.startsWith('.') && context.parentURL?.startsWith(sources);
    return next(ours ? specifier.replace(/\.js$/, '.ts') : specifier, context);
  },
});
const { startEmbeddedPostgres } = await import('../../../dev/postgres/embedded-postgres.ts');

const startedAt = performance.now();
try {
  const postgres = await startEmbeddedPostgres({ dataDir: process.argv[2] });
  const tookMs = Math.round(performance.now() - startedAt);
  process.stdout.write(`${JSON.stringify({ url: postgres.url, adopted: postgres.adopted, tookMs })}\n`);
  await once(process.stdin, 'data');
  await postgres.stop();
} catch (error) {
  process.stdout.write(`${JSON.stringify({ failure: error.message })}\n`);
}
process.stdin.destroy();
