import { isObject } from '../json/json.js';
import { childOf, type Json } from './schema-bounds.js';

/** Other ways to write the same schema, for providers that do not take the way of some programs. */

/** Some programs have their schema among its definitions, and a reference at the root. */
export function withReferredRoot({ $ref, ...others }: Json): Json {
  if ($ref === undefined) return others;
  const root = { ...others, $ref };
  const target = String($ref).split('/').slice(1).reduce<unknown>(childOf, root);
  return isObject(target) ? { ...target, ...others } : root;
}

/** Annotations: where two merged schemas both have one, the first wins. */
const annotations: ReadonlySet<string> = new Set([
  'title',
  'description',
  'default',
  'examples',
  'deprecated',
]);

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
