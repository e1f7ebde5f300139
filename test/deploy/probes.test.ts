import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { IContainer } from 'kubernetes-models/v1';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ChildProgram, startChild } from '../../dev/child-program.js';
import { environmentSchema } from '../../shared/config.js';
import { example, hasKubectl, podTemplates, render } from './manifests.js';
import { environmentOf } from './pod-environment.js';

const defaults = environmentSchema.parse({});
const graceMs = 10_000;

describe('the probes of deploy/kubernetes', () => {
  if (!hasKubectl()) return it.skip('(no kubectl on the PATH)');

  const manifests = render(example);
  const templates = podTemplates(manifests);

  describe.each([
    { name: 'quillgate-api', port: defaults.PORT, started: 503, ready: 200 },
    { name: 'quillgate-worker-openai', port: defaults.WORKER_PORT, started: 200, ready: 503 },
  ])('of $name', ({ name, port, started, ready }) => {
    const template = templates.get(name) ?? {};
    const container = template.spec?.containers[0] as IContainer;
    const folder = mkdtempSync(join(tmpdir(), 'quillgate-test-'));
    let program: ChildProgram;

    beforeAll(async () => {
      program = await startChild({
        name,
        command: resolve('bin/quillgate'),
        args: container.args ?? [],
        environment: {
          PATH: process.env.PATH,
          ...environmentOf(template, manifests),
          HOST: '127.0.0.1',
          PORT: '0',
          WORKER_PORT: '0',
        },
        cwd: folder,
        logFile: join(folder, 'log'),
      });
    });
    afterAll(async () => {
      await program?.stop({ graceMs });
      rmSync(folder, { recursive: true });
    });

    /** What a kind of probe is answered. */
    const ask = async (kind: 'startupProbe' | 'readinessProbe' | 'livenessProbe') =>
      (await fetch(`http://127.0.0.1:${program.port}${container[kind]?.httpGet?.path}`)).status;

    it('ask where the program listens', () => {
      expect(container.ports).toEqual([{ name: 'http', containerPort: port }]);
      for (const kind of ['startupProbe', 'readinessProbe', 'livenessProbe'] as const)
        expect(container[kind]?.httpGet?.port).toBe('http');
    });

    it('never restart it because a store is away', async () => {
      expect(await ask('livenessProbe')).toBe(200);
    });

    it('tell whether it may start or serve while the stores are away', async () => {
      expect({ started: await ask('startupProbe'), ready: await ask('readinessProbe') }).toEqual({
        started,
        ready,
      });
    });

    it('stand beside metrics where Prometheus is told to look', async () => {
      expect(template.metadata?.annotations).toEqual({
        'prometheus.io/scrape': 'true',
        'prometheus.io/port': String(port),
      });
      const page = await (await fetch(`http://127.0.0.1:${program.port}/metrics`)).text();
      expect(page).toMatch(/^# TYPE quillgate_/m);
    });

    it('wait longer than a check of the stores takes', () => {
      for (const kind of ['startupProbe', 'readinessProbe'] as const) {
        const { httpGet, timeoutSeconds } = container[kind] ?? {};
        if (httpGet?.path === '/readyz') expect(timeoutSeconds).toBeGreaterThan(3);
      }
    });
  });
});
