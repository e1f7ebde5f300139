import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';

const isThere = spawnSync('promtool', ['--version']).status === 0;
// A skipped test alone is easily overlooked.
if (!isThere)
  process.stderr.write('NOT CHECKED: alerts by promtool, which is not on the PATH (Debian: prometheus)\n');

describe.skipIf(!isThere)('promtool', () => {
  const promtool = (...args: string[]) => execFileSync('promtool', args, { encoding: 'utf8', stdio: 'pipe' });

  it("takes the configuration of compose's Prometheus", () => {
    expect(promtool('check', 'config', 'deploy/prometheus/prometheus.yml')).toContain('is valid');
  });

  it('sees each alert fire at what it is for, and not otherwise', () => {
    expect(promtool('test', 'rules', 'test/deploy/alerts.yaml')).toContain('SUCCESS');
  });
});

describe('the tests of the alerts', () => {
  it('are of every alert', () => {
    const { groups } = parse(readFileSync(resolve('deploy/prometheus/rules.yaml'), 'utf8'));
    const alerts = groups.flatMap((group: { rules: { alert: string }[] }) =>
      group.rules.map(({ alert }) => alert),
    );
    const tests = readFileSync('test/deploy/alerts.yaml', 'utf8');
    expect(alerts.filter((alert: string) => !tests.includes(`"${alert}"`))).toEqual([]);
  });
});
