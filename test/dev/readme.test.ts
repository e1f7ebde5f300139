import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { findBehaviour } from '../../dev/simulator/model-names.js';

const read = (file: string) => readFileSync(file, 'utf8');
const readme = read('README.md');
const lines = readme.split('\n');

describe('the README', () => {
  it('has the way to a running product, the tests, a program, licence and platforms on its first screen', () => {
    const screen = lines.slice(0, 30).join('\n');
    expect(screen).toContain('    git clone <address of this repository>');
    expect(screen).toContain('    npm ci && npm start\n');
    expect(screen).toContain('    npm ci && npm test\n');
    expect(screen).toContain('base_url="http://localhost:3000/v1"');
    for (const word of ['MIT licence', 'Linux', 'macOS', 'Windows', 'bin/quillgate'])
      expect(screen).toContain(word);
  });

  it('has a picture, 180 lines at most, and no command that is longer than a line of the page', () => {
    expect(readme).toMatch(/^!\[.+\]\(docs\/images\/.+\.png\)$/m);
    expect(lines.length).toBeLessThanOrEqual(180);
    expect(lines.filter((line) => line.startsWith('    ') && line.length > 120)).toEqual([]);
  });

  it('has the last measurement beside another gateway with 1, 32 and 128 callers, and no other', () => {
    const rows = [1, 32, 128].map((callers) => {
      const cells = new RegExp(`^\\| 0 \\| ${callers} \\|(.*)$`, 'm')
        .exec(read('docs/performance.md'))?.[1]
        ?.split('|');
      const [ratio] = /[\d.]+/.exec(cells?.[1] ?? '') ?? [];
      const [ours = 0, theirs = 0] = (cells?.[2] ?? '').split(',').map(Number);
      return { ratio, longerMs: Math.round(ours - theirs) };
    });
    const [one, few, many] = rows;
    const text = readme.replaceAll(/\s+/g, ' ');
    expect(text).toContain(
      `answered ${one?.ratio}, ${few?.ratio} and ${many?.ratio} times as many requests a second`,
    );
    expect(text).toContain(`${one?.longerMs} and ${few?.longerMs} ms longer with 1 and 32`);
  });
});

describe('docs/start.md', () => {
  it('names models that the simulator has', () => {
    const rows = read('docs/start.md').matchAll(/^\| `(sim-[^`]+)` \|/gm);
    const named = [...rows].map(([, model = '']) => model);
    expect(named.length).toBeGreaterThan(10);
    expect(named.filter((model) => !findBehaviour(model.replaceAll(/<\w+>/g, '500')))).toEqual([]);
  });
});

const pages = globSync(['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'docs/*.md']);

describe('the documentation', () => {
  it.each(pages)('links to files that exist: %s', (page) => {
    const links = [
      ...read(page)
        .replaceAll(/`[^`]*`/g, '')
        .matchAll(/\]\((?!http)([^)#]+)/g),
    ];
    const missing = links.flatMap(([, link = '']) => (existsSync(join(dirname(page), link)) ? [] : [link]));
    expect(missing).toEqual([]);
  });

  it.each(pages)('names only tests that exist: %s', (page) => {
    const named = [...read(page).matchAll(/`(test\/[\w./*{},-]+)`/g)].map(([, path = '']) => path);
    expect(named.filter((path) => globSync(path).length === 0)).toEqual([]);
  });

  /** A page of one line leads from an old address to a new one. */
  it('has every page of more than a line in docs/README.md', () => {
    const index = read('docs/README.md');
    const others = pages.filter(
      (page) => page.startsWith('docs/') && page !== 'docs/README.md' && read(page).trimEnd().includes('\n'),
    );
    expect(others.filter((page) => !index.includes(`(${page.slice('docs/'.length)})`))).toEqual([]);
  });

  /** Outside of a checkout npx runs the package that is published under a name that is not installed. */
  it('and every message -> have npx run only what npm ci installs', () => {
    const sources = globSync('{api,cli,console,db,dev,shared,workers}/**/*.{ts,tsx,mjs,html}');
    const installed = readdirSync('node_modules/.bin');
    const named = [...pages, ...sources, '.env.example', 'docker-compose.yml'].flatMap((file) =>
      [...read(file).matchAll(/\bnpx (?!-)([@\w/.-]+)/g)].map(([, name = '']) => `${name} (${file})`),
    );
    expect(named.length).toBeGreaterThan(5);
    expect(named.filter((one) => !installed.includes(one.split(' ')[0] ?? ''))).toEqual([]);
  });
});
