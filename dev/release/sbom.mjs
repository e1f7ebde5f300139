// Writes sbom.json: what the product is made of, on every platform, as CycloneDX, made by npm from the lockfile.
// The same lockfile gives the same bytes: what npm makes up anew at every run is left out.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundled } from './bundled.ts';

const root = join(dirname(fileURLToPath(import.meta.url)), '../..');
const target = process.argv[2] ?? join(root, 'sbom.json');
const { name, packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));

// Not `--omit dev`: that of npm 11 also leaves out what a development dependency needs as well, Express among it.
const options = ['--sbom-format', 'cyclonedx', '--sbom-type', 'application', '--package-lock-only'];
const printed = execFileSync('npm', ['sbom', ...options], {
  cwd: root,
  encoding: 'utf8',
  maxBuffer: 2 ** 26,
  stdio: ['ignore', 'pipe', 'inherit'],
});
writeFileSync(target, `${JSON.stringify(shippedAlone(JSON.parse(printed)), null, 2)}\n`);

function shippedAlone({ serialNumber: _random, metadata, components, dependencies, ...bom }) {
  const wanted = shippedPackages();
  const kept = components.filter((one) => wanted.delete(`${one.name}@${one.version}`));
  if (wanted.size > 0) throw new Error(`npm sbom has left out ${[...wanted].join(', ')}`);
  const refs = new Set([metadata.component, ...kept].map((one) => one['bom-ref']));
  const { timestamp: _now, ...facts } = metadata;
  return {
    ...bom,
    // npm names the product after the folder that the checkout happens to be in.
    metadata: { ...facts, component: { ...metadata.component, name } },
    components: kept,
    dependencies: dependencies
      .filter(({ ref }) => refs.has(ref))
      .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((one) => refs.has(one)) })),
  };
}

function shippedPackages() {
  const all = Object.entries(packages).map(([path, one]) => ({
    ...one,
    path,
    name: one.name ?? path.split('node_modules/').at(-1),
  }));
  const shipped = all.filter(({ path, name, dev }) => path !== '' && (!dev || bundled.has(name)));
  return new Set(shipped.map((one) => `${one.name}@${one.version}`));
}
