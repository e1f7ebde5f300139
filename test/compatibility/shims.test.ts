import { globSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

/** A comment names the release that a piece of code serves ("0.5"). Longer numbers are versions of other things. */
const release = /^\s*(?:\/?\*+|\/\/).*?(?<![\d.])0\.(\d+)(?!\.?\d| s\b| ms\b| requests| %)/;
const { version }: { version: string } = JSON.parse(readFileSync('package.json', 'utf8'));
const before = Number(version.split('.')[1]) - 1;

it('keeps nothing for a release older than the one before (decision 12)', () => {
  const files = globSync('{api,workers,shared,db,cli,dev,console}/**/*.{ts,tsx}', {
    exclude: ['**/generated/**'],
  });
  const tooOld = files.flatMap((file) =>
    readFileSync(file, 'utf8')
      .split('\n')
      .flatMap((line, n) =>
        Number(release.exec(line)?.[1] ?? before) < before ? [`${file}:${n + 1} ${line.trim()}`] : [],
      ),
  );
  expect(files.length).toBeGreaterThan(400);
  expect(tooOld).toEqual([]);
});
