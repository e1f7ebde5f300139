import { z } from 'zod';
import type { JsonObject } from './json.js';
import type { Refusal } from './refusal.js';

export const text = z.string();
export const maybeText = text.optional();
export const flag = z.boolean();
export const json = z.record(z.string(), z.unknown());
export const { literal } = z;

/** Where in a body something is. */
export type Path = readonly PropertyKey[];

/** A provider's words for a field of the wrong shape. */
export interface Complaints {
  /** The last key is one that the provider does not know. */
  unknown(path: Path): Refusal;
  missing(path: Path): Refusal;
  wrong(path: Path, value: unknown, expected: string): Refusal;
}

interface Judged {
  readonly at: Path;
  readonly complaints: Complaints;
}

/** The provider's error for the first field of a value that does not fit the shape. */
export function checkShape(
  shape: z.ZodType,
  value: unknown,
  { at, complaints }: Judged,
): Refusal | undefined {
  const issue = shape.safeParse(value, { reportInput: true }).error?.issues[0];
  if (issue === undefined) return undefined;
  const path = [...at, ...issue.path];
  if (issue.code === 'unrecognized_keys') return complaints.unknown([...path, issue.keys[0] ?? '']);
  const { input } = issue;
  // Of a choice between objects zod gives the object, and the field that decides.
  const field = issue.code === 'invalid_union' ? issue.discriminator : undefined;
  const given = field === undefined ? input : (input as JsonObject)[field];
  if (given === undefined) return complaints.missing(path);
  const known = 'values' in issue ? issue.values.join(', ') : 'one of its forms';
  return complaints.wrong(path, given, 'expected' in issue ? issue.expected : known);
}

/** As `checkShape`, for a body, most of which have none of the shape's fields. */
export const checkFieldsOf = (
  shape: z.ZodObject,
  body: JsonObject,
  complaints: Complaints,
): Refusal | undefined =>
  Object.keys(shape.shape).some((key) => key in body)
    ? checkShape(shape, body, { at: [], complaints })
    : undefined;

/** A path with dots only, as in `tools.0.name`. */
export const dotted = (path: Path): string => path.map(String).join('.');

/** A path with indexes in brackets, as in `tools[0].name`. */
export const bracketed = (path: Path): string =>
  path
    .reduce<string>((text, key) => text + (typeof key === 'number' ? `[${key}]` : `.${String(key)}`), '')
    .slice(1);
