import { isIP } from 'node:net';
import { describe, expect, it } from 'vitest';
import { environmentSchema, parseConfig } from '../../../shared/config/config.js';
import { providerIds } from '../../../shared/contracts/contract.js';
import { example, hasKubectl, ofKind, podTemplates, render, selectedBy } from './manifests.js';
import { documentedSecrets, environmentOf, secretsOf } from './pod-environment.js';

/** After the grace a program has this long to close the rest. */
const closingS = 5;
/** So much of a pool's concurrency is aimed at. */
const aim = 0.8;

describe('deploy/kubernetes', () => {
  if (!hasKubectl()) return it.skip('(no kubectl 1.27 or newer on the PATH)');

  const manifests = render(example);
  const templates = podTemplates(manifests);
  const deployments = ofKind(manifests, 'Deployment')
    .map(({ metadata }) => metadata.name)
    .sort();
  const pools = new Map(providerIds.map((id) => [id, `quillgate-worker-${id}`]));
  const variablesOf = (name: string) => environmentOf(templates.get(name) ?? {}, manifests);

  describe('its references', () => {
    it('-> has a pool for every provider, and one budget for each Deployment', () => {
      expect(deployments).toEqual(['quillgate-api', ...pools.values()].sort());
      const budgets = ofKind(manifests, 'PodDisruptionBudget').map(({ spec }) =>
        selectedBy(spec?.selector?.matchLabels, templates),
      );
      expect(budgets.sort()).toEqual(deployments.map((name) => [name]));
    });

    it('-> selects with every Deployment its own pods alone, and spreads these', () => {
      for (const { metadata, spec } of ofKind(manifests, 'Deployment')) {
        expect(selectedBy(spec?.selector.matchLabels, templates)).toEqual([metadata.name]);
        for (const { labelSelector } of spec?.template.spec?.topologySpreadConstraints ?? [])
          expect(selectedBy(labelSelector?.matchLabels, templates)).toContain(metadata.name);
      }
    });

    it('-> scales what there is, and leaves its number to that', () => {
      const scaled = [
        ...ofKind(manifests, 'HorizontalPodAutoscaler').map(({ spec }) => spec?.scaleTargetRef.name),
        ...ofKind(manifests, 'ScaledObject').map(({ spec }) => spec?.scaleTargetRef.name),
      ];
      expect(scaled.sort()).toEqual(deployments);
      for (const { spec } of ofKind(manifests, 'Deployment')) expect(spec).not.toHaveProperty('replicas');
    });

    it('-> leads from the Ingress through the Service to the API, and never to health or metrics', () => {
      const [service] = ofKind(manifests, 'Service');
      expect(selectedBy(service?.spec?.selector, templates)).toEqual(['quillgate-api']);
      const [ingress] = ofKind(manifests, 'Ingress');
      const routes = ingress?.spec?.rules?.flatMap(({ http }) => http?.paths ?? []) ?? [];
      for (const { path = '/', pathType, backend } of routes) {
        expect(backend.service).toEqual({ name: service?.metadata.name, port: { name: 'http' } });
        for (const inside of ['/livez', '/readyz', '/metrics'])
          expect(pathType === 'Exact' ? inside === path : inside.startsWith(path)).toBe(false);
      }
      expect(routes.map(({ path }) => path)).toEqual(
        expect.arrayContaining(['/chat', '/v1', '/blogs', '/', '/robots.txt']),
      );
    });

    it('-> lets the Ingress alone connect to the API, and Prometheus alone to metrics', () => {
      const open = ofKind(manifests, 'NetworkPolicy').map(({ spec }) => ({
        pods: selectedBy(spec?.podSelector?.matchLabels, templates).sort(),
        rules: spec?.ingress?.map(({ ports, from }) => ({ ports: ports?.map(({ port }) => port), from })),
      }));
      const only = (namespace: string, name: string) => [
        {
          namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
          podSelector: { matchLabels: { 'app.kubernetes.io/name': name } },
        },
      ];
      const metrics = { ports: ['metrics'], from: only('monitoring', 'prometheus') };
      expect(open.sort((a, b) => a.pods.length - b.pods.length)).toEqual([
        {
          pods: ['quillgate-api'],
          rules: [{ ports: ['http'], from: only('ingress-nginx', 'ingress-nginx') }, metrics],
        },
        { pods: [...pools.values()].sort(), rules: [metrics] },
        { pods: [...templates.keys()].sort(), rules: undefined },
      ]);
    });

    it("-> believes of a caller's address what the ingress says, and no whole network", () => {
      const { TRUSTED_PROXIES = '' } = variablesOf('quillgate-api');
      for (const address of TRUSTED_PROXIES.split(',')) expect(isIP(address), address).toBeGreaterThan(0);
    });

    it('-> takes settings from the ConfigMap, and passwords from Secrets that the docs have operators make', () => {
      const known = Object.keys(environmentSchema.shape);
      for (const name of templates.keys())
        expect(known).toEqual(expect.arrayContaining(Object.keys(variablesOf(name))));
      const taken = new Set([...templates.values()].flatMap(secretsOf));
      expect([...taken].sort()).toEqual([...documentedSecrets().keys()].sort());
    });
  });

  describe('its pods', () => {
    it.each([...templates.keys()])('of %s -> have what the program needs', (name) => {
      const program = templates.get(name)?.spec?.containers[0]?.args?.[0];
      const config = parseConfig(variablesOf(name), program as 'api' | 'worker' | 'migrate');
      const [provider] = [...pools].find(([, pool]) => pool === name) ?? [];
      if (provider) expect(config.WORKER_PROVIDERS).toEqual([provider]);
    });

    it.each([...pools])('of %s -> see the password of no database and of no other provider', (id, name) => {
      expect(secretsOf(templates.get(name) ?? {})).toEqual(['quillgate-queue', `quillgate-${id}`]);
    });

    it.each([...templates])(
      'of %s -> meet the restricted standard of Kubernetes, and more',
      (_name, { spec }) => {
        expect(spec).toMatchObject({
          automountServiceAccountToken: false,
          securityContext: {
            runAsNonRoot: true,
            runAsUser: 1000,
            seccompProfile: { type: 'RuntimeDefault' },
          },
        });
        expect(spec?.containers).toHaveLength(1);
        expect(spec?.containers[0]).toMatchObject({
          image: expect.stringMatching(/^registry\.example\.com\/quillgate:\d+\.\d+\.\d+$/),
          resources: {
            requests: { cpu: expect.any(String), memory: expect.any(String) },
            limits: { memory: expect.any(String) },
          },
          securityContext: {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ['ALL'] },
          },
        });
      },
    );

    it.each(deployments)('of %s -> are not killed before their grace is over', (name) => {
      const { spec } = templates.get(name) ?? {};
      const [, preStopS = '0'] = spec?.containers[0]?.lifecycle?.preStop?.exec?.command ?? [];
      const graceS = Number(variablesOf(name).SHUTDOWN_GRACE_MS) / 1000;
      expect(spec?.terminationGracePeriodSeconds).toBeGreaterThan(Number(preStopS) + graceS + closingS);
      expect(graceS * 1000).toBeGreaterThan(environmentSchema.parse({}).CHAT_TIMEOUT_MS);
    });

    it.each([...pools])('of %s -> are scaled by their own queue and concurrency', (id, name) => {
      const { spec } = ofKind(manifests, 'ScaledObject').find(({ metadata }) => metadata.name === name) ?? {};
      expect(spec?.scaleTargetRef.name).toBe(name);
      const { query, threshold } = spec?.triggers[0]?.metadata ?? {};
      expect(query).toBe(`sum(max by (state) (quillgate_queue_jobs{provider="${id}"}))`);
      expect(Number(threshold)).toBe(aim * Number(variablesOf(name)[`${id.toUpperCase()}_CONCURRENCY`]));
      expect(spec?.minReplicaCount).toBeGreaterThanOrEqual(1);
    });
  });
});
