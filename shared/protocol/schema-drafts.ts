import { isObject } from '../json.js';
import { type Json, UnfitSchema } from './schema-bounds.js';

/** Schemas of older drafts of JSON Schema, as the draft of 2020-12 writes them. */

/** Which keywords the provider takes, others being left as they are, and which names of properties. */
type Taker = Record<'takes' | 'takesName', (word: string) => boolean>;
type Form = [test: (value: unknown) => boolean, noun: string, below?: 'schema' | 'list' | 'names'];

const each = (keywords: string, ...form: Form) =>
  keywords.split(' ').map((keyword): [string, Form] => [keyword, form]);
const isText = (value: unknown) => typeof value === 'string';
const isNumber = (value: unknown) => typeof value === 'number';
const isBoolean = (value: unknown) => typeof value === 'boolean';
const isSchema = (value: unknown) => isBoolean(value) || isObject(value);
const isNames = (value: unknown) => Array.isArray(value) && value.every(isText);
const isFilled = (value: unknown) => Array.isArray(value) && value.length > 0;
const isCount = (value: unknown) => Number.isInteger(value) && Number(value) >= 0;
const types: ReadonlySet<unknown> = new Set('array boolean integer null number object string'.split(' '));
const isType = (value: unknown) =>
  types.has(value) || (isFilled(value) && [value].flat().every((one) => types.has(one)));

/** The values that a keyword may have. https://json-schema.org/draft/2020-12/schema */
const forms: ReadonlyMap<string, Form> = new Map([
  ...each('additionalProperties contains contentSchema else if items not', isSchema, 'a schema', 'schema'),
  ...each('propertyNames then unevaluatedItems unevaluatedProperties', isSchema, 'a schema', 'schema'),
  ...each('allOf anyOf oneOf prefixItems', isFilled, 'a list of schemas', 'list'),
  ...each('$defs definitions dependentSchemas', isObject, 'schemas by their names', 'names'),
  ...each('patternProperties properties', isObject, 'schemas by their names', 'names'),
  ...each('$anchor $comment $id $schema contentEncoding contentMediaType description', isText, 'a text'),
  ...each('format pattern title', isText, 'a text'),
  ...each('exclusiveMaximum exclusiveMinimum maximum minimum multipleOf', isNumber, 'a number'),
  ...each('maxContains maxItems maxLength maxProperties', isCount, 'a whole number'),
  ...each('minContains minItems minLength minProperties', isCount, 'a whole number'),
  ...each('deprecated readOnly uniqueItems writeOnly', isBoolean, 'true or false'),
  ...each('enum examples', Array.isArray, 'a list'),
  ...each('required', isNames, 'a list of names'),
  ...each('type', isType, 'a type of JSON, or a list of them'),
]);

/**
 * A schema as the draft of 2020-12 writes it. Claude refuses any other, and with it all tools of the request
 * (https://github.com/hyperdxio/hyperdx/pull/2925). Throws `UnfitSchema` for keywords that mean nothing in any draft.
 */
export const toCurrentDraft = (root: Json, taker: Taker): Json => renew(root, [], taker) as Json;

type Path = readonly string[];

function renew(given: unknown, path: Path, taker: Taker): unknown {
  if (!isSchema(given)) throw new UnfitSchema(path, 'must be a schema');
  if (!isObject(given)) return given;
  const current = rules.reduce((schema, rule) => rule(schema), given as Json);
  return mapValues(current, (keyword, value) => {
    const [test, noun, below] = (taker.takes(keyword) && forms.get(keyword)) || notRead;
    const isFit = test(value);
    if (isFit && below === undefined) return value;
    const place = [...path, nameBefore(keyword, given)];
    if (!isFit) throw new UnfitSchema(place, `must be ${noun}`);
    return below === 'schema' ? renew(value, place, taker) : renewAll(value as object, place, taker);
  });
}

const notRead: Form = [() => true, ''];

function renewAll(schemas: object, path: Path, taker: Taker): unknown {
  if (Array.isArray(schemas)) return schemas.map((item, n) => renew(item, [...path, String(n)], taker));
  return mapValues(schemas as Json, (name, item) => {
    const place = [...path, name];
    if (path.at(-1) === 'properties' && !taker.takesName(name)) throw new UnfitSchema(place, misnamed);
    return renew(item, place, taker);
  });
}

const misnamed = 'must have a name of 1 to 64 letters, digits, _, . and - with this provider';

/** The same object if none of its values changes. */
function mapValues(fields: Json, map: (name: string, value: unknown) => unknown): Json {
  const changed = new Map<string, unknown>();
  for (const name of Object.keys(fields)) {
    const value = map(name, fields[name]);
    if (value !== fields[name]) changed.set(name, value);
  }
  if (changed.size === 0) return fields;
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, changed.get(name) ?? value]),
  );
}

/** A keyword as the caller has it. */
function nameBefore(keyword: string, given: Json): string {
  if (!isTuple(given)) return keyword;
  return keyword === 'items' ? 'additionalItems' : keyword.replace('prefixItems', 'items');
}

const isTuple = (schema: Json): boolean => Array.isArray(schema.items) && !('prefixItems' in schema);

/** Writes an older form of a keyword as that of today. */
type Rule = (schema: Json) => Json;

/** Until 2019-09 a tuple stood in `items`. */
function withPrefixItems(schema: Json): Json {
  if (!isTuple(schema)) return schema;
  const { items, additionalItems: rest, ...others } = schema;
  return {
    ...others,
    ...(isFilled(items) && { prefixItems: items }),
    ...(rest !== undefined && { items: rest }),
  };
}

/** In draft 4 the exclusive bounds only said of the others that they are. */
const withNumber =
  (bound: string, exclusive: string): Rule =>
  (schema) => {
    if (!isBoolean(schema[exclusive])) return schema;
    const { [bound]: limit, [exclusive]: isExclusive, ...others } = schema;
    return limit === undefined ? others : { ...others, [isExclusive ? exclusive : bound]: limit };
  };

/** In draft 3 a property said of itself that it is required. A name counts once. */
function withRequiredNames(schema: Json): Json {
  const { required, properties } = schema;
  const flagged = isObject(properties)
    ? Object.keys(properties).filter((name) => Object(properties[name]).required === true)
    : [];
  if (flagged.length === 0 && !isBoolean(required) && !isFilled(required)) return schema;
  const names = new Set([isBoolean(required) ? [] : (required ?? []), flagged].flat());
  const { required: _, ...others } = schema;
  return names.size === 0 ? others : { ...schema, required: [...names] };
}

/** In draft 3 there was a type for all values. A type counts once. */
function withKnownTypes(schema: Json): Json {
  const { type } = schema;
  if (type !== 'any' && !isFilled(type)) return schema;
  const { type: _, ...others } = schema;
  const named = new Set([type].flat());
  return named.has('any') ? others : { ...schema, type: [...named] };
}

/** The schema no longer is of the draft that it names, and a tuple is elsewhere. */
function withoutOldNames(schema: Json): Json {
  const { $ref, $schema } = schema;
  if (typeof $schema === 'string' && /\/draft(-0\d|\/2019-09)\//.test($schema)) {
    const { $schema: _, ...others } = schema;
    return withoutOldNames(others);
  }
  // No keyword is a number.
  const reference = typeof $ref === 'string' ? $ref.replace(/\/items(?=\/\d+(\/|$))/g, '/prefixItems') : $ref;
  return reference === $ref ? schema : { ...schema, $ref: reference };
}

const rules: readonly Rule[] = [
  withPrefixItems,
  withNumber('minimum', 'exclusiveMinimum'),
  withNumber('maximum', 'exclusiveMaximum'),
  withRequiredNames,
  withKnownTypes,
  withoutOldNames,
];
