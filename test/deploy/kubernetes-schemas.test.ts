import { describe, expect, it } from 'vitest';
import { example, hasKubectl, type Manifest, render, titleOf, warningsOf } from './manifests.js';
import { findProblems } from './schemas.js';

describe('deploy/kubernetes, held against the schemas of Kubernetes and KEDA', () => {
  if (!hasKubectl()) return it.skip('(no kubectl 1.27 or newer on the PATH)');

  const manifests = render(example);

  it('renders without a warning of Kustomize', () => {
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
  ])('would not let %s pass', (_title, kind, path, value) => {
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
