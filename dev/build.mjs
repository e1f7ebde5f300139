// Builds dist/ once per change of the sources: generated routes and OpenAPI document, then JavaScript.
// Plain JavaScript, because it runs before anything is compiled.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, globSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const stamp = join(root, 'dist', '.inputs.sha256');

/** Digest of everything that decides what dist/ holds. */
function digestInputs() {
  const code = '{api,workers,shared,db,cli,dev,test/bench,test/soak,test/support}/**/*.ts';
  const sources = globSync([code, 'db/migrations/**'], {
    cwd: root,
    exclude: (path) => path.includes('generated'),
  }).filter((path) => statSync(join(root, path)).isFile());
  const hash = createHash('sha256');
  for (const path of [
    ...sources.sort(),
    'tsconfig.json',
    'tsconfig.build.json',
    'tsoa.json',
    'package-lock.json',
  ]) {
    hash
      .update(path)
      .update('\0')
      .update(readFileSync(join(root, path)))
      .update('\0');
  }
  return hash.digest('hex');
}

function run(tool, ...args) {
  const path = `${join(root, 'node_modules', '.bin')}:${process.env.PATH}`;
  execFileSync(join(root, 'node_modules', '.bin', tool), args, {
    cwd: root,
    stdio: ['ignore', process.stderr, 'inherit'],
    env: { ...process.env, PATH: path },
  });
}

const digest = digestInputs();
if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== digest) {
  try {
    run('tsoa', 'spec-and-routes');
    rmSync(join(root, 'dist'), { recursive: true, force: true });
    run('tsc', '-p', 'tsconfig.build.json');
    cpSync(join(root, 'db', 'migrations'), join(root, 'dist', 'db', 'migrations'), { recursive: true });
    writeFileSync(stamp, digest);
  } catch {
    process.stderr.write('The build failed; see above. It needs the development dependencies: npm ci.\n');
    process.exit(1);
  }
}
