import { join, resolve } from 'node:path';
import type { IContainer } from 'kubernetes-models/v1';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ChildProgram, startChild } from '../../../dev/child-program.js';
import { freePort } from '../../../dev/free-port.js';
import { environmentSchema } from '../../../shared/config/config.js';
import { makeFolder } from '../../support/folders.js';
import { example, hasKubectl, podTemplates, render } from './manifests.js';
import { environmentOf } from './pod-environment.js';

const defaults = environmentSchema.parse({});
const graceMs = 10_000;

describe('the probes of deploy/kubernetes', () => {
  if (!hasKubectl()) return it.skip('(no kubectl 1.27 or newer on the PATH)');

  const manifests = render(example);
  const templates = podTemplates(manifests);

  describe.each([
    {
      ...{ name: 'quillgate-api', started: 503, ready: 200 },
      probed: { name: 'http', containerPort: defaults.PORT },
    },
    {
      ...{ name: 'quillgate-worker-openai', started: 200, ready: 503 },
      probed: { name: 'metrics', containerPort: defaults.WORKER_PORT },
    },
  ])('of $name', ({ name, probed, started, ready }) => {
    const template = templates.get(name) ?? {};
    const container = template.spec?.containers[0] as IContainer;
    const variables = environmentOf(template, manifests);
    const folder = makeFolder(afterAll);
    let program: ChildProgram;
    let metricsPort: number;

    beforeAll(async () => {
      metricsPort = await freePort();
      program = await startChild({
        name,
        command: resolve('bin/quillgate'),
        args: container.args ?? [],
        environment: {
          ...{ PATH: process.env.PATH, ...variables, HOST: '127.0.0.1', PORT: '0', WORKER_PORT: '0' },
          METRICS_PORT: String(metricsPort),
        },
        cwd: folder,
        logFile: join(folder, 'log'),
      });
    });
    afterAll(() => program?.stop({ graceMs }));

    /** The answer to a kind of probe. */
    const ask = async (kind: 'startupProbe' | 'readinessProbe' | 'livenessProbe') =>
      (await fetch(`http://127.0.0.1:${program.port}${container[kind]?.httpGet?.path}`)).status;

    it('-> ask where the program listens, and wait longer than a check of the stores takes', () => {
      expect(container.ports).toContainEqual(probed);
      for (const kind of ['startupProbe', 'readinessProbe', 'livenessProbe'] as const) {
        const { httpGet, timeoutSeconds = 0 } = container[kind] ?? {};
        expect(httpGet?.port).toBe(probed.name);
        if (httpGet?.path === '/readyz') expect(timeoutSeconds).toBeGreaterThan(3);
      }
    });

    it('while the stores are away -> tell whether it may start or serve, and never restart it', async () => {
      const answers = { started: await ask('startupProbe'), ready: await ask('readinessProbe') };
      expect(answers).toEqual({ started, ready });
      expect(await ask('livenessProbe')).toBe(200);
    });

    it('-> go with metrics where Prometheus looks, and nowhere else', async () => {
      const servesApi = name === 'quillgate-api';
      const port = servesApi ? variables.METRICS_PORT : String(defaults.WORKER_PORT);
      expect(template.metadata?.annotations).toEqual({
        'prometheus.io/scrape': 'true',
        'prometheus.io/port': port,
      });
      expect(container.ports).toContainEqual({ name: 'metrics', containerPort: Number(port) });
      const scrape = (at: number) => fetch(`http://127.0.0.1:${at}/metrics`);
      const page = await (await scrape(servesApi ? metricsPort : program.port)).text();
      expect(page).toMatch(/^# TYPE quillgate_/m);
      if (servesApi) expect((await scrape(program.port)).status).toBe(404);
    });
  });
});
