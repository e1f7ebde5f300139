// Builds dist/ once per change of the sources: generated routes and OpenAPI document, JavaScript, bundled programs, the
// console. Any number may start at once, as the lines of a Procfile do: one builds, the others wait for it and find
// nothing left to do. Plain JavaScript, because it runs before anything is compiled; of TypeScript it imports what Node
// can strip.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  globSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { withLock } from './lock.ts';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const dist = join(root, 'dist');
/** Built here and moved when it is whole: a program that starts meanwhile finds all of dist/ or none. */
const unfinished = join(root, 'dist-unfinished');
const replaced = join(root, 'dist-replaced');
const stampName = '.inputs.sha256';

/** Digest of everything that decides what dist/ holds. */
function digestInputs() {
  const inputs = [
    '{api,workers,shared,db,cli,dev}/**/*.ts',
    '{shared,dev}/**/*.json',
    '{db/migrations,console}/**',
    'dev/*.mjs',
    '{package,package-lock,tsconfig,tsconfig.build,tsoa}.json',
  ];
  const sources = globSync(inputs, { cwd: root, exclude: (path) => path.includes('generated') });
  const hash = createHash('sha256');
  for (const path of sources.filter((path) => statSync(join(root, path)).isFile()).sort()) {
    hash
      .update(path)
      .update('\0')
      .update(readFileSync(join(root, path)))
      .update('\0');
  }
  return hash.digest('hex');
}

const interruption = new AbortController();

async function run(tool, ...args) {
  const path = `${join(root, 'node_modules', '.bin')}:${process.env.PATH}`;
  const child = spawn(join(root, 'node_modules', '.bin', tool), args, {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, PATH: path },
    signal: interruption.signal,
  });
  // By way of this process, which may have a spinner on the same terminal.
  for (const output of [child.stdout, child.stderr]) output.pipe(process.stderr, { end: false });
  const [code, signal] = await once(child, 'close');
  if (code !== 0) throw new Error(`${tool} ended with ${signal ?? `code ${code}`}.`);
}

function isBuilt(digest) {
  const stamp = join(dist, stampName);
  return existsSync(stamp) && readFileSync(stamp, 'utf8') === digest;
}

async function build(digest) {
  rmSync(unfinished, { recursive: true, force: true });
  await run('tsoa', 'spec-and-routes');
  // The tests begin with those that need no program.
  process.send?.('generated');
  await run('tsc', '-p', 'tsconfig.build.json', '--outDir', unfinished);
  const { bundlePrograms } = await import('./bundle.mjs');
  await bundlePrograms(unfinished);
  const { buildConsole } = await import('./console.mjs');
  await buildConsole(root, unfinished);
  cpSync(join(root, 'db', 'migrations'), join(unfinished, 'db', 'migrations'), { recursive: true });
  writeFileSync(join(unfinished, stampName), digest);
}

function replaceDist() {
  rmSync(replaced, { recursive: true, force: true });
  if (existsSync(dist)) renameSync(dist, replaced);
  renameSync(unfinished, dist);
  rmSync(replaced, { recursive: true, force: true });
}

async function buildOnce() {
  const digest = digestInputs();
  if (isBuilt(digest)) return;
  await build(digest);
  replaceDist();
}

/** Says that it builds, and that it was interrupted: the signal ends it as it would without a listener. */
async function buildAloud() {
  const { showStages } = await import('./stages.ts');
  const stages = showStages();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
    process.once(signal, () => {
      interruption.abort();
      stages.fail('Stopped before it was built; the next start builds it.');
      process.kill(process.pid, signal);
    });
  stages.begin('Building (later starts skip this)');
  try {
    await withLock(join(root, 'node_modules', '.build.lock'), buildOnce);
    stages.succeed();
  } catch (error) {
    stages.fail();
    throw error;
  }
}

try {
  // The lock is a file that is written to: who has nothing to build need not be allowed to.
  if (!isBuilt(digestInputs())) await buildAloud();
} catch (error) {
  process.stderr.write(`The build failed: ${error.message}\nIt needs the development dependencies: npm ci\n`);
  process.exit(1);
}
