import { readFileSync } from 'node:fs';
import type { IPodTemplateSpec } from 'kubernetes-models/v1';
import { type Manifest, ofKind } from './manifests.js';

/** The variables of each Secret, by its name, as `docs/deploying.md` has operators make them. */
export function documentedSecrets(): Map<string, string[]> {
  const page = readFileSync('docs/deploying.md', 'utf8').replaceAll(/\\\n\s*/g, '');
  const commands = page.matchAll(/create secret generic (\S+) (.*)/g);
  return new Map(
    [...commands].map(([, name = '', options = '']) => [
      name,
      [...options.matchAll(/--from-literal=(\w+)=/g)].map(([, variable = '']) => variable),
    ]),
  );
}

/** Names of the Secrets that a pod takes variables from. */
export const secretsOf = (template: IPodTemplateSpec): string[] =>
  sourcesOf(template).flatMap(({ secretRef }) => secretRef?.name ?? []);

/** The environment of a pod's container, without running stores. Throws when its ConfigMap is missing. */
export function environmentOf(
  template: IPodTemplateSpec,
  manifests: readonly Manifest[],
): Record<string, string> {
  const maps = new Map(ofKind(manifests, 'ConfigMap').map(({ metadata, data }) => [metadata.name, data]));
  const secrets = documentedSecrets();
  const fromSources = sourcesOf(template).flatMap(({ configMapRef, secretRef }) => {
    if (secretRef) return (secrets.get(secretRef.name ?? '') ?? []).map((name) => [name, sampleOf(name)]);
    const data = maps.get(configMapRef?.name ?? '');
    if (data === undefined) throw new Error(`no ConfigMap ${configMapRef?.name}`);
    return Object.entries(data);
  });
  const own = (template.spec?.containers[0]?.env ?? []).map(({ name, value, valueFrom }) => {
    const label = valueFrom?.fieldRef?.fieldPath.match(/^metadata\.labels\['(.+)'\]$/)?.[1];
    return [name, value ?? template.metadata?.labels?.[label ?? '']];
  });
  return Object.fromEntries([...fromSources, ...own]);
}

const sourcesOf = ({ spec }: IPodTemplateSpec) => spec?.containers[0]?.envFrom ?? [];

const sampleOf = (variable: string): string =>
  ({
    // Nothing listens on port 1.
    DATABASE_URL: 'postgres://user:password@127.0.0.1:1/quillgate',
    REDIS_URL: 'redis://127.0.0.1:1',
  })[variable] ?? `a value of ${variable} that is long enough`.replaceAll(' ', '-');
