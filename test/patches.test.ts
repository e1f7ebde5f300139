import { globSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

/** The first line of the head: `Patch of bullmq 6.7.0: …`, or two libraries with `and`. */
const named = /(\S+) (\d+\.\d+\.\d+)(?=[: ])/g;

const lock: { packages: Record<string, { version: string } | undefined> } = JSON.parse(
  readFileSync('package-lock.json', 'utf8'),
);
const table = readFileSync('docs/internals.md', 'utf8');
const files = globSync('{api,workers,shared,db,cli,dev,console}/**/patches/*.ts');

describe('patches of libraries', () => {
  it('are the rows of the table', () => {
    const rows = [...table.matchAll(/^\| `(\S+\/patches\/\S+)` \|/gm)].map(([, file]) => file);
    expect(rows.toSorted()).toEqual(files.toSorted());
  });

  it.each(files)('%s says what it gives, until when, and was checked with the installed version', (file) => {
    const head = readFileSync(file, 'utf8').split('*/', 1)[0] ?? '';
    expect(head).toMatch(/^\/\*\n \* Patch of [\s\S]+ \* Gives: [\s\S]+ \* Until: /);
    const libraries = [...(head.split('Gives:', 1)[0] ?? '').matchAll(named)];
    expect(libraries).not.toEqual([]);
    for (const [, name, version] of libraries)
      expect(`${name} ${version}`).toBe(`${name} ${lock.packages[`node_modules/${name}`]?.version}`);
  });
});
