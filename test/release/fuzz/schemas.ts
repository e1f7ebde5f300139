import fc from 'fast-check';
import { visibleText } from './texts.js';

/** The parts of a schema of OpenAPI 3.0 that values are made by. */
export interface Schema {
  $ref?: string;
  type?: 'string' | 'integer' | 'number' | 'boolean' | 'array' | 'object';
  allOf?: Schema[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  enum?: unknown[];
  nullable?: boolean;
  format?: string;
  pattern?: string;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  items?: Schema;
  minItems?: number;
  maxItems?: number;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: boolean;
  example?: Record<string, unknown>;
}

/** Makes values that schemas of one document allow. */
export interface SchemaValues {
  /** `known` has the values of properties, by name, of which a random one would mean nothing. */
  valuesOf(schema: Schema): fc.Arbitrary<unknown>;
  /** The schema behind its references. */
  resolved(schema: Schema): Schema;
}

/** `known` gives the values of properties by their names where a random value would mean nothing to the product. */
export function schemaValues(
  schemas: Record<string, unknown>,
  known: Readonly<Record<string, fc.Arbitrary<unknown>>>,
): SchemaValues {
  const resolved = (schema: Schema): Schema => {
    if (schema.$ref) return resolved(schemas[schema.$ref.split('/').at(-1) ?? ''] as Schema);
    return schema.allOf?.[0] ? resolved(schema.allOf[0]) : schema;
  };
  const valuesOf = (given: Schema): fc.Arbitrary<unknown> => {
    const schema = resolved(given);
    const values = plainValues(schema);
    return schema.nullable ? fc.option(values, { freq: 4 }) : values;
  };
  const plainValues = (schema: Schema): fc.Arbitrary<unknown> => {
    const choices = schema.anyOf ?? schema.oneOf;
    if (choices) return fc.oneof(...choices.map(valuesOf));
    if (schema.enum) return fc.constantFrom(...schema.enum);
    return ofType[schema.type ?? 'object'](schema);
  };
  const ofType: Record<NonNullable<Schema['type']>, (schema: Schema) => fc.Arbitrary<unknown>> = {
    string: textOf,
    integer: (schema) => fc.integer(boundsOf(schema)),
    number: (schema) => fc.double({ ...boundsOf(schema), noNaN: true }),
    boolean: () => fc.boolean(),
    array: (schema) => listOf(schema),
    object: (schema) => objectOf(schema),
  };
  const listOf = ({ items = {}, minItems = 0, maxItems = 4 }: Schema) =>
    fc.array(valuesOf(items), { minLength: minItems, maxLength: Math.min(maxItems, minItems + 4) });
  /** With its required properties and a few others, half of the time beside those of its example. */
  const objectOf = ({ required = [], example, properties }: Schema) => {
    if (!properties) return fc.dictionary(fc.string(), fc.jsonValue());
    const ofProperty = (name: string) => known[name] ?? valuesOf(properties[name] ?? {});
    const record = (names: readonly string[]) =>
      fc.record(Object.fromEntries(names.map((name) => [name, ofProperty(name)])), { noNullPrototype: true });
    const optional = Object.keys(properties).filter((name) => !required.includes(name));
    const some = fc.subarray(optional, { maxLength: Math.min(optional.length, 4) });
    const made = some.chain((names) => record([...required, ...names]));
    if (example === undefined) return made;
    const ofKnown = record(required.filter((name) => name in known));
    const besideExample = fc
      .tuple(ofKnown, some.chain(record))
      .map((parts) => Object.assign({ ...example }, ...parts));
    return fc.oneof(made, besideExample);
  };
  return { valuesOf, resolved };
}

const boundsOf = ({ minimum, maximum }: Schema) => ({
  ...(minimum !== undefined && { min: minimum }),
  ...(maximum !== undefined && { max: maximum }),
});

/** Longer texts than these are the business of the tests of each field. */
const longestExactly = 1000;

function textOf({ format, pattern = '', maxLength = 2000, minLength = 0 }: Schema): fc.Arbitrary<string> {
  if (format === 'uuid') return fc.uuid();
  const fits = new RegExp(pattern, 'u');
  const isRight = (text: string) => fits.test(text) && Array.from(text).length <= maxLength;
  const any = fc.oneof(
    { weight: 8, arbitrary: visibleText(maxLength) },
    {
      weight: 1,
      arbitrary: fc.constantFrom('x', '🎉').map((one) => one.repeat(Math.min(maxLength, longestExactly))),
    },
    ...(minLength === 0 ? [{ weight: 1, arbitrary: fc.constant('') }] : []),
  );
  // fast-check cannot read look-ahead, and the classes of Unicode that are used here are those of control characters.
  const likePattern = pattern.replace('(?!.*\\.\\.)', '').replace('\\p{Cc}', '\\x00-\\x1f\\x7f-\\x9f');
  const texts = ['', '\\S'].includes(pattern)
    ? any
    : fc.oneof(any, fc.stringMatching(new RegExp(likePattern)));
  return texts.filter(isRight);
}

/** Values of a property that are just beyond what its schema allows; none for a schema that allows everything. */
export function valuesBeyond(schema: Schema): unknown[] {
  const { type, minimum, maximum, minLength, maxLength, maxItems, pattern } = schema;
  const choices = schema.anyOf ?? schema.oneOf;
  return [
    ...(maxLength === undefined ? [] : ['x'.repeat(maxLength + 1)]),
    ...(minLength ? ['', '\u200b'] : []),
    ...(pattern ? ['-', 'a--b', ' ', 'a\n', 'é:'] : []),
    ...(type === 'string' ? ['a\0', '\ud83d'] : []),
    ...(minimum === undefined ? [] : [minimum - 1, minimum + 0.5]),
    ...(maximum === undefined ? [] : [maximum + 1]),
    ...(maxItems === undefined
      ? []
      : [Array.from({ length: maxItems + 1 }, (_, n) => `x${n}`), Array(5000).fill(1)]),
    ...(schema.enum ? ['Draft', '__proto__', ''] : []),
    ...(choices ? [5, {}] : []),
  ];
}
