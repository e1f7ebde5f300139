// Writes THIRD-PARTY-LICENSES.md: every dependency that is shipped with its licence, and the texts that came with them.
// Fails when one has a licence that is not on the list below. With --check it only does that, from the lockfile alone.
// Takes another project's folder instead of this one.
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { bundled } from './bundled.ts';

/** Permissive ones, whose only demand is to keep their text. Another one is for a person to read first. */
const allowed = new Set([
  '0BSD',
  'Apache-2.0',
  'BlueOak-1.0.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'ISC',
  'MIT',
  'PSF-2.0',
  'Unlicense',
]);

const { values, positionals } = parseArgs({
  options: { check: { type: 'boolean' } },
  allowPositionals: true,
});
const root = positionals[0] ?? join(dirname(fileURLToPath(import.meta.url)), '../..');

const dependencies = readDependencies();
const refused = dependencies.filter(({ licence }) => !allowed.has(licence));
for (const { name, version, licence } of refused)
  process.stderr.write(
    `${name} ${version}: the licence "${licence}" is not on the list in dev/release/licenses.mjs.\n`,
  );
if (refused.length > 0) process.exit(1);
if (!values.check) writeFileSync(join(root, 'THIRD-PARTY-LICENSES.md'), describe(dependencies));

function readDependencies() {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  return Object.entries(packages)
    .map(([path, { name, version, license, dev }]) => ({
      path,
      name: name ?? path.split('node_modules/').at(-1),
      version,
      licence: license ?? 'none',
      dev,
    }))
    .filter(({ path, name, dev }) => path !== '' && (!dev || bundled.has(name)))
    .sort((one, other) => (`${one.name}@${one.version}` < `${other.name}@${other.version}` ? -1 : 1));
}

function describe(all) {
  const lines = all.map(({ name, version, licence }) => `| ${name} | ${version} | ${licence} |`);
  const texts = Map.groupBy(
    all.flatMap((one) => textsOf(one).map((text) => ({ title: `${one.name} ${one.version}`, text }))),
    ({ text }) => text,
  );
  const sections = [...texts].map(([text, users]) => {
    const titles = [...new Set(users.map(({ title }) => title))].join(', ');
    return `### ${titles}\n\n${text.replace(/^/gm, '    ').replace(/ +$/gm, '')}\n`;
  });
  return `# Third-party licences

What Quillgate runs with, and is not part of it. Written by \`npx node dev/release/licenses.mjs\`.

| package | version | licence |
|---|---|---|
${lines.join('\n')}

## Texts

As they came with the packages; one that is not here brought none, or is for another platform.

${sections.join('\n')}`;
}

function textsOf({ path }) {
  const folder = join(root, path);
  if (!existsSync(folder)) return [];
  return globSync('{LICENSE,LICENCE,License,Licence,license,licence,COPYING,NOTICE,Notice}*', { cwd: folder })
    .filter((file) => !/\.(?:js|ts|cjs|mjs)$/.test(file))
    .sort()
    .map((file) => readFileSync(join(folder, file), 'utf8').replaceAll('\r\n', '\n').trim());
}
