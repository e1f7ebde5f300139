import { givenFields, isObject } from '../json/json.js';
import { type Json, UnfitSchema } from './schema-bounds.js';

/** Schemas of older drafts of JSON Schema, as the draft of 2020-12 writes them. */

/** Whether the provider takes a keyword; the values of others are left as they are. */
type Takes = (keyword: string) => boolean;
/** The values that a keyword may have beside its other keywords, in words, and the schemas that stand below it. */
type Form = [test: (value: unknown, schema: Json) => boolean, noun: string, below?: 'schemas' | 'names'];

const each = (keywords: string, ...form: Form) =>
  keywords.split(' ').map((keyword): [string, Form] => [keyword, form]);
const isText = (value: unknown) => typeof value === 'string';
const isNumber = (value: unknown) => typeof value === 'number';
const isBoolean = (value: unknown) => typeof value === 'boolean';
const isSchema = (value: unknown) => isBoolean(value) || isObject(value);
const isFilled = (value: unknown) => Array.isArray(value) && value.length > 0;
const isCount = (value: unknown) => Number.isInteger(value) && Number(value) >= 0;
const types = new Set<unknown>('any array boolean integer null number object string'.split(' '));
const isType = (value: unknown) =>
  types.has(value) || (isFilled(value) && [value].flat().every((one) => types.has(one)));
const isTuple = ({ items, prefixItems }: Json) => Array.isArray(items) && prefixItems === undefined;

/** The forms of https://json-schema.org/draft/2020-12/schema, and those of older drafts that `rules` rewrite. */
const forms: ReadonlyMap<string, Form> = new Map([
  ...each('additionalItems additionalProperties contains contentSchema', isSchema, 'a schema', 'schemas'),
  ...each('else if not propertyNames then', isSchema, 'a schema', 'schemas'),
  ...each('unevaluatedItems unevaluatedProperties', isSchema, 'a schema', 'schemas'),
  ...each('items', (value, schema) => isSchema(value) || isTuple(schema), 'a schema', 'schemas'),
  ...each('allOf anyOf oneOf prefixItems', isFilled, 'a list of schemas', 'schemas'),
  ...each('$defs definitions dependentSchemas', isObject, 'schemas by their names', 'names'),
  ...each('patternProperties properties', isObject, 'schemas by their names', 'names'),
  ...each('$anchor $comment $id $schema contentEncoding contentMediaType description', isText, 'a text'),
  ...each('format pattern title', isText, 'a text'),
  ...each('maximum minimum multipleOf', isNumber, 'a number'),
  ...each('exclusiveMaximum exclusiveMinimum', (value) => isNumber(value) || isBoolean(value), 'a number'),
  ...each('maxContains maxItems maxLength maxProperties', isCount, 'a whole number'),
  ...each('minContains minItems minLength minProperties', isCount, 'a whole number'),
  ...each('deprecated readOnly uniqueItems writeOnly', isBoolean, 'true or false'),
  ...each('enum examples', Array.isArray, 'a list'),
  ...each(
    'required',
    (value) => isBoolean(value) || (Array.isArray(value) && value.every(isText)),
    'a list of names',
  ),
  ...each('type', isType, 'a type of JSON, or a list of them'),
]);

/**
 * A schema as the draft of 2020-12 writes it. Claude refuses any other, and with it all tools of the request
 * (https://github.com/hyperdxio/hyperdx/pull/2925). Throws `UnfitSchema` for keywords that mean nothing in any draft.
 */
export const toCurrentDraft = (root: Json, takes: Takes): Json => renew(root, [], takes) as Json;

type Path = readonly string[];

function renew(given: unknown, path: Path, takes: Takes): unknown {
  if (!isSchema(given)) throw new UnfitSchema(path, 'must be a schema');
  if (!isObject(given)) return given;
  const schema = mapValues(given, (keyword, value) => {
    const form = takes(keyword) ? forms.get(keyword) : undefined;
    if (!form) return value;
    const [test, noun, below] = form;
    if (!test(value, given)) throw new UnfitSchema([...path, keyword], `must be ${noun}`);
    if (below === undefined) return value;
    const place = [...path, keyword];
    if (Array.isArray(value)) return value.map((item, n) => renew(item, [...place, String(n)], takes));
    if (below === 'schemas') return renew(value, place, takes);
    return mapValues(value as Json, (name, item) => renew(item, [...place, name], takes));
  });
  return rules.reduce((renewed, rule) => rule(renewed, given), schema);
}

/** The same object if none of its values changes. */
function mapValues(fields: Json, map: (name: string, value: unknown) => unknown): Json {
  const entries = Object.entries(fields).map(([name, value]): [string, unknown] => [name, map(name, value)]);
  return entries.every(([name, value]) => value === fields[name]) ? fields : Object.fromEntries(entries);
}

/** Writes an older form of a keyword as that of today; `given` is the schema before anything in it was. */
type Rule = (schema: Json, given: Json) => Json;

/** Until 2019-09 a tuple stood in `items`. */
function withPrefixItems(schema: Json): Json {
  if (!isTuple(schema)) return schema;
  const { items, additionalItems, ...others } = schema;
  const prefixItems = isFilled(items) ? items : undefined;
  return { ...others, ...givenFields({ prefixItems, items: additionalItems }) };
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
function withRequiredNames(schema: Json, { properties }: Json): Json {
  const { required, ...others } = schema;
  const flagged = isObject(properties)
    ? Object.keys(properties).filter((name) => Object(properties[name]).required === true)
    : [];
  const names = new Set([...(Array.isArray(required) ? required : []), ...flagged]);
  if (names.size > 0) return { ...schema, required: [...names] };
  return isBoolean(required) ? others : schema;
}

/** In draft 3 there was a type for all values. A type counts once. */
function withKnownTypes(schema: Json): Json {
  const { type, ...others } = schema;
  const named = new Set([type].flat());
  if (named.has('any')) return others;
  return Array.isArray(type) ? { ...schema, type: [...named] } : schema;
}

/** The schema no longer is of the draft that it names. */
function withoutOldDraft(schema: Json): Json {
  const { $schema, ...others } = schema;
  return /\/draft(-0\d|\/2019-09)\//.test(String($schema)) ? others : schema;
}

/** A tuple is elsewhere. No keyword is a number. */
const withNewReference: Rule = (schema) =>
  isText(schema.$ref)
    ? { ...schema, $ref: String(schema.$ref).replace(/\/items(?=\/\d+(\/|$))/g, '/prefixItems') }
    : schema;

const rules: readonly Rule[] = [
  withPrefixItems,
  withNumber('minimum', 'exclusiveMinimum'),
  withNumber('maximum', 'exclusiveMaximum'),
  withRequiredNames,
  withKnownTypes,
  withoutOldDraft,
  withNewReference,
];
