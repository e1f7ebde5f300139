import { execFile, execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';

interface Override {
  includes: [string];
  linter: { rules: { style: { noRestrictedImports: { options: { patterns: Pattern[] } } } } };
}
interface Pattern {
  group: string[];
  message: string;
}

const folder = mkdtempSync(join(tmpdir(), 'quillgate-rules-'));
afterAll(() => rmSync(folder, { recursive: true }));
const written = readFileSync('biome.imports.json', 'utf8');
const { overrides } = JSON.parse(written) as { overrides: Override[] };
const patternsOf = ({ linter }: Override) => linter.rules.style.noRestrictedImports.options.patterns;
const everyPattern = overrides.flatMap(patternsOf);

describe('the import rules', () => {
  it('are those of the tables in dev/import-rules.mjs', () => {
    const target = join(folder, 'fresh.json');
    execFileSync(process.execPath, ['dev/import-rules.mjs', target]);
    expect(written, 'run npm run import-rules').toBe(readFileSync(target, 'utf8'));
  });

  it('fire for every import that is forbidden in a place, and for no other', async () => {
    for (const file of ['biome.json', 'biome.imports.json']) copyFileSync(file, join(folder, file));
    const files = overrides.map((override) => ({ path: pathIn(override), override }));
    for (const { path } of files) plant(path);
    const fired = await lint();
    for (const { path, override } of files) {
      const forbidden = new Set(patternsOf(override).flatMap(({ group }) => group.map(specifier)));
      const said = fired.filter((one) => one.path === path).map(({ specifier }) => specifier);
      expect(new Set(said), path).toEqual(forbidden);
    }
  });
});

const pathIn = ({ includes: [place] }: Override): string => place.replace('**', 'planted.ts');
const specifier = (glob: string): string => glob.replace('**', 'planted.js');
const specifiers = [...new Set(everyPattern.flatMap(({ group }) => group.map(specifier)))];

/** A file that imports everything that is forbidden anywhere, one import a line. */
function plant(path: string): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), specifiers.map((one) => `export * from '${one}';\n`).join(''));
}

async function lint(): Promise<{ path: string; specifier: string | undefined }[]> {
  const options = ['--vcs-enabled=false', '--only=style/noRestrictedImports', '--max-diagnostics=none'];
  const stdout = await new Promise<string>((done) => {
    const args = ['lint', ...options, '--reporter=github', '.'];
    execFile(resolve('node_modules/.bin/biome'), args, { cwd: folder }, (_error, printed) => done(printed));
  });
  const places = stdout.matchAll(/file=(?<path>[^,]+),line=(?<line>\d+)/g);
  return [...places].map(({ groups }) => ({
    path: relative(folder, groups?.path ?? ''),
    specifier: specifiers[Number(groups?.line) - 1],
  }));
}
