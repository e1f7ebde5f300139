// Bundles the programs of bin/quillgate from compiled JavaScript: at every start Node would otherwise look up and read
// a thousand files one by one, which takes twice the processor time.
import { join, relative } from 'node:path';
import { rolldown } from 'rolldown';

/** One file each; what a program loads later, or shares with others, lies in chunks beside it. */
const entries = {
  api: 'api/main.js',
  worker: 'workers/main.js',
  cli: 'cli/main.js',
  start: 'dev/main.js',
  simulator: 'dev/simulator/main.js',
  // Threads, which are looked for beside what starts them.
  'markdown-worker': 'api/blog/rendering/markdown-worker.js',
  'json-worker': 'shared/json/json-worker.js',
};

/** Stay in node_modules: SDKs are loaded when their pool starts, `pg` with the queue in PostgreSQL, others by path. */
const external = [
  /^openai(\/|$)/,
  /^@anthropic-ai\//,
  /^@aws-sdk\//,
  /^@google\//,
  /^google-auth-library/,
  /^pg(-native)?$/,
  /^drizzle-orm/,
  /^swagger-ui-dist/,
  // Finds its native part beside itself; it is optional.
  /^msgpackr-extract/,
];

/** Writes the programs to `programs/` in the folder of compiled JavaScript. */
export async function bundlePrograms(compiled) {
  const bundle = await rolldown({
    input: Object.fromEntries(Object.entries(entries).map(([name, file]) => [name, join(compiled, file)])),
    external,
    platform: 'node',
    logLevel: 'warn',
    plugins: [keepPlaces(compiled)],
  });
  await bundle.write({
    dir: join(compiled, 'programs'),
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: '[name]-[hash].js',
  });
  await bundle.close();
}

/** A module that names a file by its own place still finds it: migrations, the launcher, packages. */
const keepPlaces = (compiled) => ({
  name: 'keep-places',
  transform: {
    filter: { code: 'import.meta.url' },
    handler(code, id) {
      const place = relative(compiled, id);
      if (place.startsWith('..') || /(markdown|json)-thread\.js$/.test(place)) return undefined;
      return code.replaceAll('import.meta.url', `new URL('../${place}', import.meta.url).href`);
    },
  },
});
