import { isObject, type JsonObject } from '../../shared/json/json.js';

/** The part of a schema that a local reference names; undefined if there is none. */
export function resolve(root: JsonObject, reference: string): unknown {
  const [start, ...segments] = reference.split('/');
  return segments.reduce<unknown>(
    (value, segment) => Object(value)[segment.replaceAll('~1', '/').replaceAll('~0', '~')],
    start === '#' ? root : undefined,
  );
}

/**
 * A schema and all schemas within it, each before its own: with the keys that lead to it, and whether it contains
 * itself. References are followed. A value in the place of a schema is listed even if it is no object.
 */
export function schemasIn(root: JsonObject) {
  const places: { schema: unknown; path: readonly string[]; isCircle: boolean }[] = [];
  const above = new Set<unknown>();
  const done = new Set<unknown>();
  const visit = (schema: unknown, path: readonly string[]): void => {
    if (done.has(schema)) return;
    const isCircle = above.has(schema);
    places.push({ schema, path, isCircle });
    if (isCircle || !isObject(schema)) return;
    above.add(schema);
    for (const [keys, inner] of below(schema, root)) visit(inner, [...path, ...keys]);
    above.delete(schema);
    done.add(schema);
  };
  visit(root, []);
  return places;
}

/** The keys that lead to a schema, and itself. */
type Inner = [keys: string[], schema: unknown];

function below(schema: JsonObject, root: JsonObject): Inner[] {
  const { $ref, items, additionalProperties: others } = schema;
  const inner = ['properties', '$defs', 'definitions', 'anyOf', 'oneOf', 'allOf', 'prefixItems'].flatMap(
    (key): Inner[] => Object.entries(schema[key] ?? {}).map(([name, value]) => [[key, name], value]),
  );
  if (items !== undefined) inner.push([['items'], items]);
  if (isObject(others)) inner.push([['additionalProperties'], others]);
  return typeof $ref === 'string' ? [...inner, [[], resolve(root, $ref)]] : inner;
}
