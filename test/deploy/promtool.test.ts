import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { makeFolder } from '../support/folders.js';
import { panels, queriesOf, withoutVariables } from './dashboard.js';

const isThere = spawnSync('promtool', ['--version']).status === 0;
// A skipped test alone is easily overlooked.
if (!isThere)
  process.stderr.write(
    'NOT CHECKED: alerts and dashboard by promtool, which is not on the PATH (Debian: prometheus)\n',
  );

describe.skipIf(!isThere)('promtool', () => {
  const dir = makeFolder(afterAll);
  const promtool = (...args: string[]) => execFileSync('promtool', args, { encoding: 'utf8', stdio: 'pipe' });
  /** Checks rules, which are JSON and so YAML. */
  const checkQueries = (queries: readonly string[]) => {
    const file = join(dir, 'rules.yaml');
    const rules = queries.map((expr, n) => ({ record: `query:${n}`, expr }));
    writeFileSync(file, JSON.stringify({ groups: [{ name: 'queries', rules }] }));
    return promtool('check', 'rules', file);
  };

  it('takes the alerts', () => {
    expect(promtool('check', 'rules', 'deploy/prometheus/rules.yaml')).toContain('SUCCESS');
  });

  it("takes the configuration of compose's Prometheus", () => {
    expect(promtool('check', 'config', 'deploy/prometheus/prometheus.yml')).toContain('is valid');
  });

  it('takes every query of the dashboard, and would not take a broken one', () => {
    const queries = panels.flatMap(queriesOf).map(withoutVariables);
    expect(checkQueries(queries)).toContain(`SUCCESS: ${queries.length} rules found`);
    expect(() => checkQueries([...queries, 'sum by (provider (quillgate_queue_jobs)'])).toThrow(
      'could not parse',
    );
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
