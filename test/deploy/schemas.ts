import { ScaledObject } from '@kubernetes-models/keda/keda.sh/v1alpha1';
import { Deployment } from 'kubernetes-models/apps/v1';
import { HorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2';
import { Job } from 'kubernetes-models/batch/v1';
import { Ingress, NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1';
import { ConfigMap, Namespace, Service, ServiceAccount } from 'kubernetes-models/v1';
import { type Manifest, titleOf } from './manifests.js';

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
export function findProblems(manifest: Manifest): string[] {
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
