import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { quillgate } from '../support/command-line.js';
import { type Deployment, startDeployment } from '../support/deployment.js';
import { readMetrics } from '../support/metrics.js';

const { version: release } = JSON.parse(readFileSync('package.json', 'utf8'));

describe('the release that runs', () => {
  let deployment: Deployment;
  beforeAll(async () => {
    deployment = await startDeployment({});
  });
  afterAll(() => deployment.stop());

  const pages = () => [deployment.url, `http://127.0.0.1:${deployment.workers[0]?.port}`];

  it('→ is told by /readyz and by a metric, of the API and of a worker', async () => {
    for (const page of pages()) {
      expect(await (await fetch(`${page}/readyz`)).json()).toMatchObject({ status: 'ok', release });
      const scraped = readMetrics(await (await fetch(`${page}/metrics`)).text());
      expect(scraped.get(`quillgate_build_info{release="${release}"}`)).toBe(1);
    }
  });

  it("→ stands in the first line of each program's log", () => {
    const lines = deployment
      .logs()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    for (const program of ['api', 'worker'])
      expect(lines.find((line) => line.program === program)).toMatchObject({ msg: 'starting', release });
  });

  it('→ is not the version of the API, and the document says which is which', async () => {
    const { info } = JSON.parse(await (await fetch(`${deployment.url}/openapi.json`)).text());
    expect(info.version).toBe('1.0.0');
    expect(info.description).toContain(`release ${release}`);
  });

  it.each([['--version'], ['-V'], ['api', '--version'], ['worker', '--version'], ['start', '--version']])(
    '→ is printed by quillgate %s %s',
    async (...args) => {
      expect(await quillgate(args, {})).toEqual({ code: 0, stdout: `${release}\n`, stderr: '' });
    },
  );
});
