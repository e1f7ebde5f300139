import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { behaviourList } from '../../dev/simulator/behaviours.js';

const readme = readFileSync('README.md', 'utf8');
const lines = readme.split('\n');

describe('the README', () => {
  it('has a picture and the way to a running product on its first screen, and 180 lines at most', () => {
    const screen = lines.slice(0, 30).join('\n');
    expect(screen).toContain('    git clone <address of this repository>');
    expect(screen).toContain('    npm ci && npm start\n');
    expect(screen).toMatch(/^!\[.+\]\(docs\/images\/.+\.png\)$/m);
    expect(lines.length).toBeLessThanOrEqual(180);
  });

  it("names every model of the simulator, and no other's", () => {
    const named = [...readme.matchAll(/^\| [A-Z].*$/gm)].flatMap(([row]) => row.match(/sim-[^`]+/g) ?? []);
    expect(named.sort()).toEqual(behaviourList.map(({ model }) => model).sort());
  });

  it.each([
    'README.md',
    'docs/tour.md',
    'docs/tools.md',
    'docs/openai.md',
    'docs/deploying.md',
    'docs/features.md',
    'CONTRIBUTING.md',
  ])('links to files that exist: %s', (page) => {
    const links = [...readFileSync(page, 'utf8').matchAll(/\]\((?!http)([^)#]+)/g)];
    const missing = links.flatMap(([, link = '']) => (existsSync(join(dirname(page), link)) ? [] : [link]));
    expect(missing).toEqual([]);
  });
});
