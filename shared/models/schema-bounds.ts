import { isObject } from '../json/json.js';

const maxBytes = 256 * 1024;
const maxValues = 10_000;
/** The levels of a schema. */
export const maxDepth = 32;

export type Json = Readonly<Record<string, unknown>>;

/** Thrown where a provider cannot be asked for a schema at all. No text of the caller's is in `detail`. */
export class UnfitSchema extends Error {
  override readonly name = 'UnfitSchema';

  constructor(
    /** The keywords and names that lead to the place. */
    readonly path: readonly string[],
    readonly detail: string,
  ) {
    super('The provider cannot be asked for this schema.');
  }
}

/** A value in a schema: a schema itself, schemas by name, or what only looks like one. */
interface Place {
  value: unknown;
  kind: 'schema' | 'names' | 'data';
  path: readonly string[];
}

const kinds: ReadonlyMap<string, Place['kind']> = new Map([
  ...['properties', '$defs', 'definitions', 'patternProperties', 'dependentSchemas'].map(
    (keyword) => [keyword, 'names'] as const,
  ),
  ...['const', 'enum', 'default', 'examples'].map((keyword) => [keyword, 'data'] as const),
]);

/** The keywords of JSON Schema that may be named to a caller: other words are the caller's own. */
export const keywords: ReadonlySet<string> = new Set(
  [
    '$anchor $defs $dynamicAnchor $dynamicRef $id additionalItems additionalProperties allOf anyOf const contains',
    'contentEncoding contentMediaType contentSchema default definitions dependencies dependentRequired',
    'dependentSchemas deprecated description else enum examples exclusiveMaximum exclusiveMinimum format if items',
    'maxContains maxItems maxLength maxProperties maximum minContains minItems minLength minProperties minimum',
    'multipleOf not nullable oneOf pattern patternProperties prefixItems properties propertyNames readOnly required',
    'then unevaluatedItems unevaluatedProperties uniqueItems writeOnly',
  ].flatMap((line) => line.split(' ')),
);

const tooLarge = `exceeds ${maxBytes} bytes or ${maxValues} values, alone or with the other schemas`;

/**
 * The first place where a request's schemas break the bounds of all providers, in time linear in their size: 256 KB of
 * JSON and 10,000 values together, 32 levels, no reference but to a schema in the same one. The path begins with the
 * number of the schema.
 */
export function checkSchemas(schemas: readonly unknown[]): { path: string[]; detail: string } | undefined {
  let values = schemas.length;
  let length = 0;
  const places = schemas.map((value, n): Place => ({ value, kind: 'schema', path: [String(n)] })).reverse();
  for (let place = places.pop(); place; place = places.pop()) {
    const { value, path } = place;
    values += countOf(value);
    length += String(path.at(-1)).length + (typeof value === 'string' ? value.length : 0);
    // Before anything takes memory for them.
    if (values > maxValues || length > maxBytes) return { path: path.slice(0, 1), detail: tooLarge };
    if (path.length > maxDepth && isContainer(value))
      return { path: path.slice(0, 1), detail: `is nested more than ${maxDepth} levels deep` };
    if (isMisled(place, schemas[Number(path[0])]))
      return { path: [...path, '$ref'], detail: 'must refer to a place in the same schema' };
    places.push(...placesIn(place).reverse());
  }
  const bytes = Buffer.byteLength(JSON.stringify(schemas));
  return bytes > maxBytes ? { path: [], detail: tooLarge } : undefined;
}

function countOf(value: unknown): number {
  if (Array.isArray(value)) return value.length;
  return isObject(value) ? Object.keys(value).length : 0;
}

function placesIn({ value, kind, path }: Place): Place[] {
  if (!isContainer(value)) return [];
  return Object.entries(value).map(([key, below]) => {
    const named = kind === 'schema' && !Array.isArray(value) ? kinds.get(key) : undefined;
    return { value: below, kind: named ?? (kind === 'data' ? 'data' : 'schema'), path: [...path, key] };
  });
}

function isMisled({ value, kind }: Place, root: unknown): boolean {
  if (kind !== 'schema' || !isObject(value) || !Object.hasOwn(value, '$ref')) return false;
  if (typeof value.$ref !== 'string') return true;
  // No schema is deeper, and an address may have millions of steps.
  const [first, ...segments] = value.$ref.split('/', maxDepth + 2);
  return first !== '#' || !isObject(segments.reduce(childOf, root));
}

/** The value that one segment of a reference leads to (RFC 6901, as a fragment); undefined if there is none. */
export function childOf(value: unknown, segment: string): unknown {
  if (!isContainer(value)) return undefined;
  const key = /[%~]/.test(segment) ? decode(segment).replaceAll('~1', '/').replaceAll('~0', '~') : segment;
  return Object.hasOwn(value, key) ? (value as Json)[key] : undefined;
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

const isContainer = (value: unknown): value is object => typeof value === 'object' && value !== null;

/** Other ways to write the same schema, for providers that do not take the way of some programs. */

/** Some programs have their schema among its definitions, and a reference at the root. */
export function withReferredRoot({ $ref, ...others }: Json): Json {
  if ($ref === undefined) return others;
  const root = { ...others, $ref };
  const target = String($ref).split('/').slice(1).reduce<unknown>(childOf, root);
  return isObject(target) ? { ...target, ...others } : root;
}

/** Annotations: where two merged schemas both have one, the first wins. */
const annotations = new Set('title description default examples deprecated'.split(' '));

/** Keywords that may stand beside a reference. */
const besideReference: ReadonlySet<string> = new Set(['$ref', '$defs', 'definitions', ...annotations]);

/**
 * The schema and its `allOf` as one schema, as programs write it that inherit from a type; the schema itself where they
 * cannot be one. No provider but OpenAI takes objects there.
 */
export function unite(schema: Json): Json {
  const { allOf } = schema;
  if (!Array.isArray(allOf) || !allOf.every(isObject)) return schema;
  const { allOf: _, ...own } = schema;
  return join([own, ...allOf.map(unite)]) ?? schema;
}

/** One schema that says what all of them say; undefined where two say different things of the same. */
function join(schemas: readonly Json[]): Json | undefined {
  const words = new Map<string, unknown>();
  const named = new Map<string, unknown>();
  const isOne = schemas.every(
    ({ properties, required: _, ...others }) =>
      addAll(named, properties) && addAll(words, others, annotations),
  );
  if (!isOne) return undefined;
  const required = schemas.flatMap((schema) => (Array.isArray(schema.required) ? schema.required : []));
  if (schemas.some(({ properties }) => isObject(properties)))
    words.set('properties', Object.fromEntries(named));
  if (required.length > 0) words.set('required', [...new Set(required)]);
  const isMore = [...words.keys()].some((keyword) => !besideReference.has(keyword));
  return words.has('$ref') && isMore ? undefined : Object.fromEntries(words);
}

/** False where a key has another value already, and may not have two; the first one stays. */
function addAll(to: Map<string, unknown>, from: unknown, mayDiffer?: ReadonlySet<string>): boolean {
  const entries = isObject(from) ? Object.entries(from) : [];
  return entries.every(([key, value]) => {
    if (!to.has(key)) to.set(key, value);
    return to.get(key) === value || mayDiffer?.has(key);
  });
}

/** Gemini takes texts and numbers alone in an `enum`: null becomes a schema of its own. */
export function separateNull(schema: Json): Json {
  const { enum: values, type, ...others } = schema;
  if (!Array.isArray(values) || !values.includes(null) || 'anyOf' in schema) return schema;
  const types = [type].flat().filter((each) => each !== undefined && each !== 'null');
  const named = { ...(types.length > 0 && { type: types.length === 1 ? types[0] : types }) };
  const rest = values.filter((value) => value !== null);
  return { ...others, anyOf: [...(rest.length > 0 ? [{ ...named, enum: rest }] : []), { type: 'null' }] };
}

/** Gemini refuses an empty text in an `enum`: the other values are left, if there are any. */
export function withoutEmptyText(schema: Json): Json {
  const values = Array.isArray(schema.enum) ? schema.enum.filter((value) => value !== '') : [];
  return values.length > 0 ? { ...schema, enum: values } : schema;
}

/** Gemini refuses an array that does not say what it holds. https://github.com/NousResearch/hermes-agent/issues/71804 */
export function withItems(schema: Json): Json {
  const isSaid = 'items' in schema || 'prefixItems' in schema;
  return [schema.type].flat().includes('array') && !isSaid ? { ...schema, items: {} } : schema;
}
