import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { providerIds } from '../../shared/contracts/contract.js';
import { panels, queriesOf, withoutVariables } from './dashboard.js';
import { metricsMissingIn, unknownIn } from './queries.js';

const yaml = (file: string) => parse(readFileSync(file, 'utf8'), { merge: true });

describe('the dashboard', () => {
  const queries = panels.flatMap((panel) => queriesOf(panel).map((query) => [panel.title, query] as const));

  it.each(queries)('in %s by %s -> asks for what there is', (_, query) => {
    expect(unknownIn(withoutVariables(query))).toEqual([]);
  });

  it('-> shows every metric', () => {
    expect(metricsMissingIn(queries.map(([, query]) => query).join())).toEqual([]);
  });

  it('-> names lines by labels that their queries leave', () => {
    const wrong = panels.flatMap(({ title, targets = [] }) =>
      targets.flatMap(({ expr, legendFormat }) =>
        [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].flatMap(([, label = '']) => {
          const left = / by \(([^)]*)\)/.exec(expr)?.[1]?.split(', ') ?? ['instance'];
          return left.includes(label) ? [] : [`${title}: ${label}`];
        }),
      ),
    );
    expect(wrong).toEqual([]);
  });

  it('-> says of every panel what it shows and in which unit, and asks the chosen datasource', () => {
    const plots = panels.filter(({ type }) => type !== 'row');
    for (const { title, description, fieldConfig, datasource, targets } of plots) {
      expect
        .soft([title, description?.endsWith('.'), fieldConfig?.defaults.unit])
        .toEqual([expect.stringMatching(/./), true, expect.stringMatching(/./)]);
      expect.soft(datasource?.uid).toBe(`\${datasource}`);
      expect
        .soft(targets?.map((target) => target.datasource.uid))
        .toEqual(targets?.map(() => `\${datasource}`));
    }
  });
});

describe('the profile "monitoring" of docker-compose.yml', () => {
  const { services, volumes } = yaml('docker-compose.yml');
  const { prometheus, grafana, api } = services;
  const mountOf = (service: { volumes: string[] }, folder: string) =>
    service.volumes.map((volume) => volume.split(':')).find(([from]) => from === folder)?.[1];

  it('-> starts by its name alone, and has its data on volumes', () => {
    expect([prometheus.profiles, grafana.profiles]).toEqual([['monitoring'], ['monitoring']]);
    const unasked = Object.values<{ profiles?: string[] }>(services).filter((service) => !service.profiles);
    expect(unasked).toHaveLength(Object.keys(services).length - 2);
    expect(Object.keys(volumes)).toEqual(expect.arrayContaining(['prometheus', 'grafana']));
  });

  it('-> scrapes the API and every worker, where they are', () => {
    const { scrape_configs: configs, rule_files: files } = yaml('deploy/prometheus/prometheus.yml');
    const [{ dns_sd_configs: targets, job_name: job }] = configs;
    expect(targets).toMatchObject([
      { names: ['api'], port: api.environment.METRICS_PORT },
      { names: providerIds.map((id) => `worker-${id}`), port: 3001 },
    ]);
    for (const name of targets.flatMap((target: { names: string[] }) => target.names))
      expect(services[name].networks).toEqual(expect.arrayContaining(prometheus.networks));
    expect(mountOf(prometheus, './deploy/prometheus')).toBe('/etc/prometheus');
    expect(files.map((file: string) => readFileSync(`deploy/prometheus/${file}`, 'utf8'))).toHaveLength(1);
    const jobs = panels
      .flatMap(queriesOf)
      .flatMap((query) => [...query.matchAll(/job="(\w+)"/g)].map(([, name]) => name));
    expect(new Set(jobs)).toEqual(new Set([job]));
  });

  it('-> gives Grafana that Prometheus and the dashboard', () => {
    const provisioning = 'deploy/grafana/provisioning';
    const { datasources } = yaml(`${provisioning}/datasources/prometheus.yaml`);
    expect(datasources).toMatchObject([
      { type: 'prometheus', url: 'http://prometheus:9090', isDefault: true },
    ]);
    expect(mountOf(grafana, `./${provisioning}`)).toBe('/etc/grafana/provisioning');
    const { providers } = yaml(`${provisioning}/dashboards/quillgate.yaml`);
    const folder = mountOf(grafana, './deploy/grafana/dashboards');
    expect(providers[0].options.path).toBe(folder);
    const home = grafana.environment.GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH;
    expect(home).toBe(`${folder}/${basename(home)}`);
    expect(readFileSync(`deploy/grafana/dashboards/${basename(home)}`, 'utf8')).toContain(
      '"uid": "quillgate"',
    );
  });

  it('-> publishes Grafana alone, to this machine, for looking without signing in', () => {
    expect(prometheus.ports).toBeUndefined();
    expect(grafana.ports).toEqual([`\${PUBLISH_ADDRESS:-127.0.0.1}:\${GRAFANA_PORT:-3004}:3000`]);
    expect(grafana.environment).toMatchObject({
      GF_AUTH_ANONYMOUS_ORG_ROLE: 'Viewer',
      GF_AUTH_DISABLE_LOGIN_FORM: 'true',
      GF_AUTH_BASIC_ENABLED: 'false',
    });
  });
});
