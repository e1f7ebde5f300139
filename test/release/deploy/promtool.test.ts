import { execFileSync, spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';

const isThere = spawnSync('promtool', ['--version']).status === 0;
// A skipped test alone is easily overlooked.
if (!isThere)
  process.stderr.write('NOT CHECKED: alerts by promtool, which is not on the PATH (Debian: prometheus)\n');

describe.skipIf(!isThere)('promtool', () => {
  const promtool = (...args: string[]) => execFileSync('promtool', args, { encoding: 'utf8', stdio: 'pipe' });

  it("given the configuration of compose's Prometheus -> takes it", () => {
    expect(promtool('check', 'config', 'deploy/prometheus/prometheus.yml')).toContain('is valid');
  });

  it('given the tests of the alerts -> sees each fire at what it is for, and not otherwise', () => {
    expect(promtool('test', 'rules', 'test/release/deploy/alerts.yaml')).toContain('SUCCESS');
  });
});
