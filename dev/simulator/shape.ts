import { z } from 'zod';
import type { JsonObject } from '../../shared/json/json.js';
import type { Refusal } from './refusal.js';

export const text = z.string();
export const json = z.record(z.string(), z.unknown());

/** Optional fields with any value. */
export const unread = (names: string): Record<never, z.ZodType> =>
  Object.fromEntries(Array.from(names.matchAll(/\w+/g), ([name]) => [name, z.unknown().optional()]));

/** Where in a body something is. */
export type Path = readonly PropertyKey[];

export type Issue = z.core.$ZodIssue;

/** A provider's words for a body of the wrong shape. */
export interface Complaints {
  /** The object at the path has fields that the provider does not know. */
  unknown(path: Path, keys: readonly string[]): Refusal;
  /** A value is not as it has to be; `undefined` is not there. */
  wrong(path: Path, value: unknown, issue: Issue): Refusal;
}

/** The provider's error for the first field of a body that does not fit the shape. */
export function checkShape(shape: z.ZodType, body: JsonObject, complaints: Complaints): Refusal | undefined {
  const [first] = shape.safeParse(body, { reportInput: true }).error?.issues ?? [];
  if (first === undefined) return undefined;
  const { path, issue } = innermost(first);
  if (issue.code === 'unrecognized_keys') return complaints.unknown(path, issue.keys);
  // For a choice between objects, zod gives the object and the field that decides.
  const field = issue.code === 'invalid_union' ? issue.discriminator : undefined;
  const value = field === undefined ? issue.input : (issue.input as JsonObject)[field];
  return complaints.wrong(path, value, issue);
}

/** Finds the fault within the form that the value has, where the shape allows several. */
function innermost(issue: Issue, at: Path = []): { path: Path; issue: Issue } {
  const path = [...at, ...issue.path];
  const faults = issue.code === 'invalid_union' ? issue.errors.flatMap(([first]) => first ?? []) : [];
  const inner =
    faults.find((fault) => fault.path.length > 0 || fault.code === 'unrecognized_keys') ??
    faults.find(({ code }) => code !== 'invalid_type');
  return inner === undefined ? { path, issue } : innermost(inner, path);
}

/** A path with dots only, as in `tools.0.name`. */
export const dotted = (path: Path): string => path.map(String).join('.');

/** A path with indexes in brackets, as in `tools[0].name`. */
export const bracketed = (path: Path): string =>
  path
    .reduce<string>((text, key) => text + (typeof key === 'number' ? `[${key}]` : `.${String(key)}`), '')
    .slice(1);
