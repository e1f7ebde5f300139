import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { onTestFinished } from 'vitest';

/** Files by path, as bytes in latin1 text, so that differences show. */
export type Tree = Record<string, string>;

/** A temporary folder. It is removed after the test, or in the hook that is given. */
export function makeFolder(hook: (remove: () => void) => void = onTestFinished): string {
  const folder = mkdtempSync(join(tmpdir(), 'quillgate-test-'));
  hook(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Writes files (UTF-8) into a new folder. */
export function plant(files: Record<string, string | Buffer>): string {
  const folder = makeFolder();
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(folder, dirname(path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  return folder;
}

/** Writes what `readTree` has read into a new folder. */
export const plantTree = (tree: Tree): string =>
  plant(Object.fromEntries(Object.entries(tree).map(([path, text]) => [path, Buffer.from(text, 'latin1')])));

/** Reads every file below a folder. */
export function readTree(folder: string): Tree {
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((path) => join(folder, path))
    .filter((path) => statSync(path).isFile());
  return Object.fromEntries(
    paths.sort().map((path) => [relative(folder, path), readFileSync(path, 'latin1')]),
  );
}
