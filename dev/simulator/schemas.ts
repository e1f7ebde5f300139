import { isObject, type JsonObject } from '../../shared/json/json.js';

// Properties that are not required are left out below this depth, so that recursive schemas end.
const maxOptionalDepth = 3;
const maxDepth = 40;
const maxValues = 10_000;

/** A text of each format that Claude takes. */
export const formatTexts = new Map(
  Object.entries({
    'date-time': '2026-01-01T00:00:00Z',
    time: '00:00:00Z',
    date: '2026-01-01',
    duration: 'P1D',
    email: 'reader@example.com',
    hostname: 'example.com',
    uri: 'https://example.com/',
    ipv4: '192.0.2.1',
    ipv6: '2001:db8::1',
    uuid: '0190b6f0-7c1a-7000-8000-000000000000',
  }),
);

/** A value that fits a JSON Schema; texts have at least `textLength` characters, where the schema allows that. */
export function fill(schema: unknown, textLength = 4): unknown {
  return new Filler(isObject(schema) ? schema : {}, textLength).value(schema, 0);
}

class Filler {
  #left = maxValues;

  constructor(
    readonly root: JsonObject,
    readonly textLength: number,
  ) {}

  value(schema: unknown, depth: number): unknown {
    this.#left -= 1;
    if (!isObject(schema)) return 'text';
    if (depth > maxDepth || this.#left < 0) return null;
    if ('const' in schema) return schema.const;
    if (Array.isArray(schema.enum)) return schema.enum[0];
    if (typeof schema.$ref === 'string') return this.value(resolve(this.root, schema.$ref), depth + 1);
    const choices = schema.anyOf ?? schema.oneOf;
    // The last choice of a recursive schema is usually the one that ends it.
    const chosen = Array.isArray(choices) ? [choices.at(depth > maxOptionalDepth ? -1 : 0)] : schema.allOf;
    return Array.isArray(chosen) ? this.#all(schema, chosen, depth) : this.#typed(schema, depth);
  }

  #all(schema: JsonObject, parts: unknown[], depth: number): unknown {
    const own = 'properties' in schema ? [this.#typed(schema, depth)] : [];
    const values = [...own, ...parts.map((part) => this.value(part, depth + 1))];
    return values.every(isObject) ? Object.assign({}, ...values) : values[0];
  }

  #typed(schema: JsonObject, depth: number): unknown {
    const types = [schema.type ?? ('properties' in schema ? 'object' : 'string')].flat();
    const type = types.find((name) => name !== 'null') ?? 'null';
    if (type === 'object') return this.#object(schema, depth);
    if (type === 'array') return this.#array(schema, depth);
    if (type === 'string') return this.#text(schema);
    if (type === 'boolean') return true;
    return type === 'null' ? null : numberFor(schema, type === 'integer');
  }

  #object({ properties = {}, required = [], additionalProperties }: JsonObject, depth: number): object {
    const known = properties as JsonObject;
    const names = [...(depth < maxOptionalDepth ? Object.keys(known) : []), ...(required as string[])];
    const schemaOf = (name: string) => (Object.hasOwn(known, name) ? known[name] : additionalProperties);
    return Object.fromEntries(
      [...new Set(names)].map((name) => [name, this.value(schemaOf(name), depth + 1)]),
    );
  }

  #array({ items, minItems, maxItems }: JsonObject, depth: number): unknown[] {
    const usual = depth < maxOptionalDepth ? 1 : 0;
    const length = Math.min(Number(minItems ?? usual), Number(maxItems ?? maxValues), maxValues);
    return Array.from({ length }, () => this.value(items, depth + 1));
  }

  #text({ format, minLength = 0, maxLength }: JsonObject): string {
    const given = formatTexts.get(String(format));
    if (given !== undefined) return given;
    const length = Math.min(Math.max(this.textLength, Number(minLength)), Number(maxLength ?? Infinity));
    this.#left -= length / 100;
    return 'text'.padEnd(Math.min(length, 100_000), 'x').slice(0, length);
  }
}

function numberFor(schema: JsonObject, isInteger: boolean): number {
  const { minimum, exclusiveMinimum: above, maximum, exclusiveMaximum: below } = schema;
  const high = Number(maximum ?? below ?? Infinity);
  const low = Number(minimum ?? above ?? Math.min(1, high - 1));
  if (above === undefined) return isInteger ? Math.ceil(low) : low;
  return isInteger ? Math.floor(low) + 1 : (low + Math.min(high, low + 2)) / 2;
}

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
