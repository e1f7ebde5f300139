import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { parse, stringify } from 'yaml';
import { setIntake } from '../../cli/commands/pool-settings.js';
import { freePort } from '../../dev/free-port.js';
import { panels, queriesOf, withoutVariables } from '../deploy/dashboard.js';
import { type Deployment, startDeployment } from '../support/deployment.js';
import { openStream, readStream } from '../support/event-streams.js';
import { patience } from '../support/patience.js';
import { profiles } from '../support/profiles.js';

const isThere = spawnSync('prometheus', ['--version']).status === 0;
// A skipped test alone is easily overlooked.
if (!isThere)
  process.stderr.write(
    'NOT CHECKED: the dashboard on a running Prometheus, which is not on the PATH (Debian: prometheus)\n',
  );

describe.skipIf(!isThere)('a Prometheus that scrapes an API process and a worker', () => {
  let deployment: Deployment;
  let prometheus: ChildProcess;
  let url: string;
  const dir = mkdtempSync(join(tmpdir(), 'quillgate-prometheus-'));

  beforeAll(async () => {
    vi.spyOn(process.stdout, 'write').mockReturnValue(true);
    deployment = await startDeployment({ variables: profiles.plain });
    const port = await freePort();
    url = `http://127.0.0.1:${port}`;
    const file = join(dir, 'prometheus.yml');
    writeFileSync(file, configuration([deployment.api, ...deployment.workers].map((child) => child.port)));
    const listen = [`--web.listen-address=127.0.0.1:${port}`, `--storage.tsdb.path=${join(dir, 'data')}`];
    prometheus = spawn('prometheus', [`--config.file=${file}`, ...listen], { stdio: 'ignore' });
    await vi.waitFor(async () => expect((await fetch(`${url}/-/ready`)).status).toBe(200), patience);
  });
  afterAll(async () => {
    if (prometheus?.kill('SIGKILL')) await once(prometheus, 'exit');
    await deployment?.stop();
    rmSync(dir, { recursive: true });
    vi.restoreAllMocks();
  });

  const ask = async (path: string) => {
    const answer = await fetch(`${url}/api/v1/${path}`);
    const { status, data, error } = (await answer.json()) as { status: string; data: never; error?: string };
    expect([status, error]).toEqual(['success', undefined]);
    return data;
  };
  const seriesOf = async (query: string): Promise<number> => {
    const data: { result: unknown[] } = await ask(`query?query=${encodeURIComponent(query)}`);
    return data.result.length;
  };

  it('→ finds something for every query of the dashboard', async () => {
    const queries = panels.flatMap(queriesOf).map(withoutVariables);
    await setIntake(deployment.stores, 'vertexai', { intake: 'paused' });
    await vi.waitFor(async () => {
      await someOfEverything(deployment);
      const counts = await Promise.all(queries.map(seriesOf));
      expect(queries.filter((_, n) => counts[n] === 0)).toEqual([]);
    }, patience);
  });

  it('→ evaluates every alert, and none fires', async () => {
    await vi.waitFor(async () => {
      const { groups }: { groups: { rules: { name: string; health: string; state: string }[] }[] } =
        await ask('rules');
      const rules = groups.flatMap((group) => group.rules);
      expect(rules.length).toBeGreaterThan(0);
      expect(rules.filter(({ health, state }) => health !== 'ok' || state === 'firing')).toEqual([]);
    }, patience);
  });
});

/** So that what is counted only when it happens is counted too. */
async function someOfEverything({ chat, blog, url }: Deployment): Promise<void> {
  await Promise.all([
    chat({}),
    chat({ model: 'sim-status-500', headers: { 'X-LLM-Fallback': 'bedrock' } }),
    openStream({ url }).then((stream) => readStream(stream)),
    blog('/blogs').then((answer) => answer.text()),
  ]);
}

/** Compose's, asked more often, of processes that have no names. */
function configuration(ports: readonly number[]): string {
  const { scrape_configs: scrapes, ...all } = parse(readFileSync('deploy/prometheus/prometheus.yml', 'utf8'));
  const [{ dns_sd_configs: _, ...job }] = scrapes;
  return stringify({
    ...all,
    global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
    rule_files: all.rule_files.map((file: string) => resolve('deploy/prometheus', file)),
    scrape_configs: [{ ...job, static_configs: [{ targets: ports.map((port) => `127.0.0.1:${port}`) }] }],
  });
}
