import { execFileSync, spawnSync } from 'node:child_process';
import type { IScaledObject } from '@kubernetes-models/keda/keda.sh/v1alpha1';
import type { IDeployment } from 'kubernetes-models/apps/v1';
import type { IHorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2';
import type { IJob } from 'kubernetes-models/batch/v1';
import type { IIngress, INetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1';
import type { IPodDisruptionBudget } from 'kubernetes-models/policy/v1';
import type { IConfigMap, IPodTemplateSpec, IService } from 'kubernetes-models/v1';
import { parseAllDocuments } from 'yaml';

/** A rendered document of Kubernetes, as far as all kinds are alike. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
}

interface Kinds {
  ConfigMap: IConfigMap;
  Deployment: IDeployment;
  HorizontalPodAutoscaler: IHorizontalPodAutoscaler;
  Ingress: IIngress;
  Job: IJob;
  NetworkPolicy: INetworkPolicy;
  PodDisruptionBudget: IPodDisruptionBudget;
  ScaledObject: IScaledObject;
  Service: IService;
}

/** The overlay that has everything. */
export const example = 'deploy/kubernetes/overlays/example';

/** Whether there is a kubectl on the PATH that is new enough for the manifests. */
export function hasKubectl(): boolean {
  try {
    const options = ['version', '--client', '--output', 'json'];
    const { clientVersion } = JSON.parse(
      execFileSync('kubectl', options, { encoding: 'utf8', stdio: 'pipe' }),
    );
    return Number.parseInt(clientVersion.minor, 10) >= 27;
  } catch {
    return false;
  }
}

/** The output of `kubectl kustomize` for a folder. Throws with its words when it refuses. */
export function render(folder: string): Manifest[] {
  const rendered = execFileSync('kubectl', ['kustomize', folder], { encoding: 'utf8', stdio: 'pipe' });
  return parseAllDocuments(rendered).map((document) => document.toJS() as Manifest);
}

/** The messages of `kubectl kustomize` about a folder, beside its output. */
export const warningsOf = (folder: string): string =>
  spawnSync('kubectl', ['kustomize', folder], { encoding: 'utf8' }).stderr;

/** Those of one kind. They have been held against their schema by another test. */
export const ofKind = <K extends keyof Kinds>(manifests: readonly Manifest[], kind: K) =>
  manifests.filter((manifest) => manifest.kind === kind) as (Kinds[K] & Manifest)[];

/** The templates of pods, by the name of the Deployment or Job. */
export const podTemplates = (manifests: readonly Manifest[]): Map<string, IPodTemplateSpec> =>
  new Map(
    [...ofKind(manifests, 'Deployment'), ...ofKind(manifests, 'Job')].map(({ metadata, spec }) => [
      metadata.name,
      spec?.template ?? {},
    ]),
  );

/** The names of those whose pods have all these labels; of no labels, those of all. */
export const selectedBy = (
  labels: Readonly<Record<string, string>> | undefined,
  templates: Map<string, IPodTemplateSpec>,
): string[] =>
  [...templates].flatMap(([name, { metadata }]) =>
    Object.entries(labels ?? {}).every(([key, value]) => metadata?.labels?.[key] === value) ? [name] : [],
  );

/** How a document is called in a failure. */
export const titleOf = ({ kind, metadata }: Manifest): string => `${kind} ${metadata.name}`;
