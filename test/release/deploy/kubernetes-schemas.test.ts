import { ScaledObject } from '@kubernetes-models/keda/keda.sh/v1alpha1';
import { Deployment } from 'kubernetes-models/apps/v1';
import { HorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2';
import { Job } from 'kubernetes-models/batch/v1';
import { Ingress, NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1';
import { ConfigMap, Namespace, Service, ServiceAccount } from 'kubernetes-models/v1';
import { describe, expect, it } from 'vitest';
import { example, hasKubectl, type Manifest, render, titleOf, warningsOf } from './manifests.js';

describe('deploy/kubernetes, held against the schemas of Kubernetes and KEDA', () => {
  if (!hasKubectl()) return it.skip('(no kubectl 1.27 or newer on the PATH)');

  const manifests = render(example);

  it('-> renders without a warning of Kustomize', () => {
    expect(warningsOf(example)).toBe('');
  });

  it.each(manifests.map((manifest) => [titleOf(manifest), manifest] as const))('%s', (_title, manifest) => {
    expect(findProblems(manifest)).toEqual([]);
  });

  it.each([
    ['a wrong type', 'Deployment', '/spec/minReadySeconds', '3'],
    ['a missing field', 'Deployment', '/spec/selector', undefined],
    ['an unknown field', 'Deployment', '/spec/template/spec/containers/0/readynessProbe', {}],
    ['an unknown field of KEDA', 'ScaledObject', '/spec/minReplicas', 2],
    ['a wrong type of KEDA', 'ScaledObject', '/spec/triggers/0/metadata/threshold', 16],
    ['an API that there is not', 'Deployment', '/apiVersion', 'apps/v1beta1'],
  ])('with %s -> would not pass', (_title, kind, path, value) => {
    const intact = manifests.find((manifest) => manifest.kind === kind);
    expect(findProblems(changed(intact, { path, value }))).toHaveLength(1);
  });
});

/** A copy with another value at a path of fields. */
function changed(intact: Manifest | undefined, { path, value }: { path: string; value: unknown }): Manifest {
  const copy = structuredClone(intact) as Manifest;
  const [last = '', ...outer] = path.split('/').slice(1).reverse();
  const parent = outer.reverse().reduce((inner, key) => Reflect.get(inner, key), copy as object);
  Reflect.set(parent, last, value);
  return copy;
}

/** Every kind that we ship, with the published schema behind it. */
const models = [
  ConfigMap,
  Deployment,
  HorizontalPodAutoscaler,
  Ingress,
  Job,
  Namespace,
  NetworkPolicy,
  PodDisruptionBudget,
  ScaledObject,
  Service,
  ServiceAccount,
] as const;

/**
 * The errors of a document by its schema: wrong types and missing fields in the validator's words, and fields that
 * the schema does not have, which the published schemas would let pass.
 */
function findProblems(manifest: Manifest): string[] {
  const model = models.find(
    ({ apiVersion, kind }) => apiVersion === manifest.apiVersion && kind === manifest.kind,
  );
  if (model === undefined) return [`${titleOf(manifest)}: no schema for ${manifest.apiVersion}`];
  const read = new Set<string>();
  try {
    model.prototype.validate.call(watched(manifest, { path: '', read }));
  } catch (error) {
    return [`${titleOf(manifest)}: ${(error as Error).message}`];
  }
  const unknown = pathsIn(manifest).filter((path) => !read.has(path));
  return unknown.map((path) => `${titleOf(manifest)}: no field ${path}`);
}

/** The same value, which records the paths that are read of it: a validator reads the fields it knows. */
function watched<T extends object>(value: T, { path, read }: { path: string; read: Set<string> }): T {
  return new Proxy(value, {
    get: (target, key, receiver) => {
      const field: unknown = Reflect.get(target, key, receiver);
      if (typeof key === 'symbol' || !Object.hasOwn(target, key)) return field;
      const at = `${path}/${key}`;
      read.add(at);
      return typeof field === 'object' && field !== null ? watched(field, { path: at, read }) : field;
    },
  });
}

/** The paths of all fields and elements of a document. */
function pathsIn(value: unknown, path = ''): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, field]) => {
    const at = `${path}/${key}`;
    return [at, ...pathsIn(field, at)];
  });
}
