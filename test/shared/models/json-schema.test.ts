import { describe, expect, it } from 'vitest';
import { fitSchema } from '../../../shared/models/json-schema.js';
import { UnfitSchema } from '../../../shared/models/schema-bounds.js';
import { growthOfVisits } from '../../support/visits.js';

type Json = Record<string, unknown>;
const text = { type: 'string' };
const closed = (properties: Json, more: Json = {}) => ({
  ...{ type: 'object', properties, additionalProperties: false },
  ...more,
});
const array = (more: Json) => ({ type: 'array', ...more });
const inField = (field: unknown, more: Json = {}) => closed({ field }, more);

const inFields = (properties: Json, more: Json = {}) => ({ type: 'object', properties, ...more });

/** Why the schema cannot be asked for, and where. */
function refusalOf(...args: Parameters<typeof fitSchema>) {
  try {
    return fitSchema(...args);
  } catch (error) {
    if (!(error instanceof UnfitSchema)) throw error;
    return [error.path.join('.'), error.detail];
  }
}

describe('fitSchema', () => {
  const everything = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    properties: {
      name: { type: 'string', minLength: 1, maxLength: 5, description: 'Whose?' },
      age: { type: ['integer', 'null'], minimum: 0, 'x-unit': 'years' },
      kind: { oneOf: [{ const: 'a' }, { $ref: '#/definitions/list' }] },
      again: { $ref: '#/properties/kind/oneOf/1', description: 'Again' },
    },
    required: ['name'],
    definitions: { list: array({ items: inFields({}), minItems: 1, maxItems: 3 }) },
  };

  it('leaves schemas for OpenAI, and those of tools of Claude that are not strict, as they are', () => {
    expect(fitSchema('openai', everything, 'format')).toEqual({ schema: everything, moved: [] });
    expect(fitSchema('anthropic', everything, 'tool')).toEqual({ schema: everything, moved: [] });
    const map = { additionalProperties: text };
    expect(fitSchema('bedrock', map, 'tool').schema).toEqual({ type: 'object', ...map });
  });

  it.each(['anthropic', 'bedrock'] as const)('fits formats and strict tools to Claude on %s', (id) => {
    const fitted = {
      schema: closed(
        {
          name: { type: 'string', description: 'Whose?\n\nminLength: 1, maxLength: 5' },
          age: { type: ['integer', 'null'], description: 'minimum: 0, x-unit: "years"' },
          kind: { anyOf: [{ const: 'a' }, { $ref: '#/definitions/list' }] },
          again: { $ref: '#/properties/kind/anyOf/1', description: 'Again' },
        },
        {
          required: ['name'],
          definitions: { list: array({ items: closed({}), minItems: 1, description: 'maxItems: 3' }) },
        },
      ),
      moved: ['minLength', 'maxLength', 'minimum', 'others', 'maxItems'],
    };
    expect(fitSchema(id, everything, 'format')).toEqual(fitted);
    expect(fitSchema(id, everything, 'strict-tool')).toEqual(fitted);
  });

  it.each(['format', 'strict-tool', 'tool'] as const)('fits a %s to Gemini', (use) => {
    const { kind, age } = everything.properties;
    expect(fitSchema('vertexai', everything, use)).toEqual({
      schema: {
        ...{ type: 'object', required: ['name'] },
        properties: {
          name: { type: 'string', description: 'Whose?\n\nminLength: 1, maxLength: 5' },
          age: { type: age.type, minimum: 0, description: 'x-unit: "years"' },
          kind: { ...kind, oneOf: [{ enum: ['a'] }, { $ref: '#/$defs/list' }] },
          again: { anyOf: [{ $ref: '#/properties/kind/oneOf/1' }], description: 'Again' },
        },
        $defs: everything.definitions,
      },
      moved: ['minLength', 'maxLength', 'others'],
    });
  });

  it.each<[keyword: string, schema: Json]>([
    ['pattern', { ...text, pattern: '(a)\\1' }],
    ['pattern', { ...text, pattern: '\\bword' }],
    ['enum', { ...text, enum: [{}] }],
    ['prefixItems', array({ prefixItems: [text, text] })],
  ])('moves %s into words where Claude does not take its value: %j', (keyword, field) => {
    const { [keyword]: value, ...others } = field;
    expect(fitSchema('anthropic', inField(field), 'format')).toEqual({
      schema: inField({ ...others, description: `${keyword}: ${JSON.stringify(value)}` }),
      moved: [keyword],
    });
  });

  it.each<[string, Json]>([
    ['plain keywords', { ...text, pattern: '^[a-z]+\\d$', format: 'date-time', title: 'T', default: 'a' }],
    ['primitives', { enum: ['a', 1, null, false] }],
    ['lists of schemas', { anyOf: [text] }],
    ['names that are keywords', closed({ oneOf: text, $ref: text, maxLength: text, ['__proto__']: text })],
  ])('takes %s at Claude', (_, field) => {
    expect(fitSchema('bedrock', inField(field), 'format')).toEqual({ schema: inField(field), moved: [] });
  });

  const number = { type: 'number' };
  const clashing = [closed({ b: text }), inField(text, { minProperties: 1 }), closed({ b: number })];
  const intoAllOf = { $ref: '#/properties/a/allOf/0' };
  const withDefinition = [{ $ref: '#/$defs/b' }, closed({ c: text })];
  const inA = (a: unknown, more: Json = {}) => ({ properties: { a }, ...more });
  it.each<[Json, path: string, detail: string]>([
    [{ additionalProperties: text }, 'additionalProperties', 'maps'],
    [{ additionalProperties: {} }, 'additionalProperties', 'maps'],
    [{ patternProperties: { '^a': text } }, 'patternProperties', 'maps'],
    [inA({}), 'properties.a', 'type'],
    [inA(true), 'properties.a', 'type'],
    [inA({ anyOf: [text, { description: 'any' }] }), 'properties.a.anyOf.1', 'type'],
    [inA({ $ref: '#' }), '', 'contain itself'],
    [inA({ $ref: '#/not/there' }), 'properties.a.$ref', 'refer'],
    [inA({ $ref: 'https://example.org/' }), 'properties.a.$ref', 'refer'],
    [inA({ $ref: '#/properties' }), 'properties.a.$ref', 'refer'],
    [inA({ anyOf: [text], oneOf: [text] }), 'properties.a.oneOf', 'beside'],
    [inA(closed({ b: text }, { anyOf: [closed({})] })), 'properties.a.properties', 'beside'],
    [inA({ allOf: withDefinition }, { $defs: { b: closed({}) } }), 'properties.a.allOf', 'one schema'],
    [inA({ allOf: clashing }), 'properties.a.allOf', 'one schema'],
    [{ properties: { a: { allOf: [text] }, b: intoAllOf } }, 'properties.b.$ref', 'refer'],
  ])('%j -> is refused at Claude', (schema, path, detail) => {
    const refusal = refusalOf('anthropic', { type: 'object', ...schema }, 'format');
    expect(refusal).toEqual([path, expect.stringContaining(detail)]);
  });

  const requiring = (name: string) => closed({ [name]: text }, { required: [name] });
  const keywords = closed({ allOf: text, ['__proto__']: text });
  it.each<[string, given: Json, fitted: Json]>([
    [
      'a reference with a description',
      { allOf: [{ $ref: '#/$defs/a' }], description: 'd' },
      { $ref: '#/$defs/a', description: 'd' },
    ],
    [
      'objects',
      { allOf: [requiring('b'), { allOf: [{ ...requiring('c'), title: 'C' }] }] },
      closed({ b: text, c: text }, { required: ['b', 'c'], title: 'C' }),
    ],
    ['names that are keywords', { allOf: [keywords] }, keywords],
  ])('makes one schema of an allOf of %s, for Claude and Gemini', (_, given, fitted) => {
    const more = { $defs: { a: text } };
    // Gemini wants nothing beside a reference.
    const { $ref, ...others } = fitted;
    const separate = $ref === undefined ? fitted : { anyOf: [{ $ref }], ...others };
    for (const [id, expected] of [['anthropic', fitted] as const, ['vertexai', separate] as const])
      expect(fitSchema(id, inField(given, more), 'format')).toEqual({
        ...{ schema: inField(expected, more), moved: [] },
      });
  });

  it('leaves an allOf of patterns to words', () => {
    const field = { ...text, allOf: [{ pattern: 'a' }, { pattern: 'b' }] };
    expect(fitSchema('anthropic', inField(field), 'format').moved).toEqual(['allOf']);
  });

  it.each(['strict-tool', 'tool'] as const)(
    'puts the schema that a root refers to in its place, of a %s',
    (use) => {
      const given = { $ref: '#/definitions/Args', definitions: { Args: inField(text) }, description: 'd' };
      const { $ref: _, ...others } = given;
      expect(fitSchema('bedrock', given, use).schema).toEqual({ ...inField(text), ...others });
      expect(fitSchema('vertexai', given, use).schema).toMatchObject(inFields({ field: text }));
    },
  );

  it.each(['anthropic', 'vertexai'] as const)('does so where the reference is in an allOf: %s', (id) => {
    const given = { allOf: [{ $ref: '#/$defs/Args' }], $defs: { Args: inField(text) } };
    const { schema, moved } = fitSchema(id, given, 'strict-tool');
    expect({ schema, moved }).toEqual({ schema: { ...inField(text), $defs: given.$defs }, moved: [] });
  });

  it('leaves the type of an object to the objects that it is one of, at Claude', () => {
    const anyOf = [closed({ a: text }), closed({ b: text })];
    const given = { type: 'object', anyOf, description: 'd' };
    expect(fitSchema('anthropic', inField(given), 'format').schema).toEqual(
      inField({ anyOf, description: 'd' }),
    );
  });

  const orNull = (...others: Json[]) => ({ anyOf: [...others, { type: 'null' }] });
  it.each<[given: Json, fitted: Json]>([
    [{ type: ['string', 'null'], enum: ['a', null] }, orNull({ ...text, enum: ['a'] })],
    [{ enum: [1, null], title: 'T' }, Object.assign({ title: 'T' }, orNull({ enum: [1] }))],
    [{ enum: [null] }, orNull()],
  ])('gives null a schema of its own at Gemini: %j', (given, fitted) => {
    expect(fitSchema('vertexai', inField(given), 'format')).toEqual({ schema: inField(fitted), moved: [] });
  });

  const ghost = { type: 'object', properties: { a: text }, required: ['b', 'a', 'toString'] };
  const own = { ...ghost, required: ['a'], description: 'required: ["b","toString"]' };
  const choices = (...values: unknown[]) => ({ ...text, enum: values });
  const words = (description: string) => ({ ...text, description });
  it.each<[string, given: Json, fitted: Json, moved?: string]>([
    ['a required name that is no property', ghost, own, 'required'],
    [
      'required names without properties',
      array({ items: { type: 'object', required: ['b'] } }),
      array({ items: { type: 'object', description: 'required: ["b"]' } }),
      'required',
    ],
    [
      'a choice of required names',
      { ...ghost, required: ['a'], anyOf: [{ required: ['a'] }] },
      { ...ghost, required: ['a'], anyOf: [{ description: 'required: ["a"]' }] },
      'required',
    ],
    ['such a name in an allOf', { allOf: [ghost, { title: 'T' }] }, { ...own, title: 'T' }, 'required'],
    ['an empty enum', choices(), words('enum: []'), 'enum'],
    ['an enum of an empty text', choices(''), words('enum: [""]'), 'enum'],
    ['an empty text in an enum', choices('', 'a'), choices('a')],
    ['an empty text beside null', choices('', 'a', null), orNull(choices('a'))],
    ['a const that is an empty text', { ...text, const: '' }, words('const: ""'), 'const'],
    ['an array without items', array({}), array({ items: {} })],
    ['arrays within arrays', array({ items: array({}) }), array({ items: array({ items: {} }) })],
    ['an array or null', { type: ['array', 'null'] }, { type: ['array', 'null'], items: {} }],
  ])('Gemini refuses %s -> it gets a schema that it takes, in any place', (_, given, fitted, moved) => {
    const around = (field: Json) => inFields({ field: { anyOf: [field] } }, { $defs: { field } });
    for (const use of ['tool', 'format'] as const)
      expect(fitSchema('vertexai', around(given), use)).toEqual({
        schema: around(fitted),
        moved: moved === undefined ? [] : [moved],
      });
    expect(fitSchema('anthropic', around(given), 'tool').schema).toEqual(around(given));
  });

  it('an allOf of thousands -> each is looked at a fixed number of times', () => {
    const schemaOf = (count: number) =>
      inField({ allOf: Array.from({ length: count }, (_, n) => requiring(`p${n}`)) });
    expect(growthOfVisits(schemaOf, (schema) => fitSchema('anthropic', schema, 'format'))).toBeLessThan(17);
    const { schema } = fitSchema('anthropic', schemaOf(4000), 'format');
    expect(schema).toMatchObject({ properties: { field: { required: { length: 4000 } } } });
  });

  it('tells a circle from schemas that are only used often', () => {
    const node = (target: string) => closed({ next: { $ref: `#/$defs/${target}` } });
    const circle = closed({}, { $defs: { a: node('b'), b: node('c'), c: node('a') } });
    expect(refusalOf('bedrock', circle, 'format')).toEqual(['', 'cannot contain itself']);
    expect(fitSchema('vertexai', circle, 'format')).toMatchObject({ moved: [] });
    const line = closed({ x: node('a'), y: node('a') }, { $defs: { a: node('b'), b: node('c'), c: text } });
    expect(fitSchema('bedrock', line, 'format').schema).toEqual(line);
  });

  it.each<[Json, path: string]>([
    [{ type: 'string' }, 'type'],
    [{ type: ['object', 'null'] }, 'type'],
    [{ anyOf: [{ type: 'object' }] }, 'anyOf'],
  ])('refuses arguments that are no object: %j', (schema, path) => {
    expect(refusalOf('anthropic', schema, 'tool')).toEqual([path, expect.any(String)]);
    expect(refusalOf('bedrock', schema, 'strict-tool')).toEqual([path, expect.any(String)]);
    if (path === 'type') expect(refusalOf('vertexai', schema, 'tool')).toEqual([path, expect.any(String)]);
  });

  it('follows references as often as a schema has them, without a stack for them', () => {
    const $defs = Object.fromEntries(
      Array.from({ length: 2000 }, (_, n) => [`d${n}`, closed({ a: { $ref: `#/$defs/d${n + 1}` } })]),
    );
    const schema = inField({ $ref: '#/$defs/d0' }, { $defs: { ...$defs, d2000: text } });
    expect(fitSchema('anthropic', schema, 'format')).toEqual({ schema, moved: [] });
  });

  const tuple = [number, text];
  const noSchema = { default: { items: tuple, required: true }, enum: [{ type: 'any' }] };
  it.each<[string, older: Json, current: Json]>([
    ['a tuple', array({ items: tuple, minItems: 2 }), array({ prefixItems: tuple, minItems: 2 })],
    ['a closed tuple', { items: tuple, additionalItems: false }, { prefixItems: tuple, items: false }],
    [
      'a tuple with a rest',
      { items: tuple, additionalItems: { items: tuple } },
      { prefixItems: tuple, items: { prefixItems: tuple } },
    ],
    ['an empty tuple', array({ items: [] }), array({})],
    ['an exclusive bound', { minimum: 1, exclusiveMinimum: true }, { exclusiveMinimum: 1 }],
    ['bounds that are not exclusive', { maximum: 1, exclusiveMaximum: false }, { maximum: 1 }],
    ['no bound that is exclusive', { type: 'number', exclusiveMaximum: true }, number],
    ['any type', { type: 'any', description: 'd' }, { description: 'd' }],
    ['any type among others', { type: ['string', 'any'] }, {}],
    ['a type twice', { type: ['string', 'null', 'string'] }, { type: ['string', 'null'] }],
    ['names twice', { required: ['a', 'a'] }, { required: ['a'] }],
    ['a draft', { $schema: 'http://json-schema.org/draft-07/schema#', ...text }, text],
    [
      'properties that are required',
      inFields(
        { a: { ...text, required: true }, b: { ...number, required: false }, c: text },
        { required: ['c'] },
      ),
      inFields({ a: text, b: number, c: text }, { required: ['c', 'a'] }),
    ],
    ['what nothing requires', { anyOf: [{ ...text, required: true }] }, { anyOf: [text] }],
    [
      'a reference into a tuple',
      inFields({ items: { items: [number] }, b: { $ref: '#/properties/field/properties/items/items/0' } }),
      inFields({
        items: { prefixItems: [number] },
        b: { $ref: '#/properties/field/properties/items/prefixItems/0' },
      }),
    ],
    [
      'what is below each keyword',
      { anyOf: [{ items: tuple }], not: { type: 'any' } },
      { anyOf: [{ prefixItems: tuple }], not: {} },
    ],
    ['what is below names', { $defs: { d: { items: tuple } } }, { $defs: { d: { prefixItems: tuple } } }],
    ['no schema', noSchema, noSchema],
  ])('%s of an older draft -> is sent as 2020-12 has it, in a tool of Claude', (_, older, current) => {
    for (const id of ['anthropic', 'bedrock'] as const)
      expect(fitSchema(id, inField(older), 'tool')).toEqual({ schema: inField(current), moved: [] });
    expect(fitSchema('openai', inField(older), 'tool').schema).toEqual(inField(older));
  });

  it('a tuple, exclusive bounds and required properties of older drafts -> Gemini takes them', () => {
    const older = {
      a: array({ items: tuple }),
      b: { ...number, minimum: 1, exclusiveMinimum: false, required: true },
    };
    const current = { a: array({ prefixItems: tuple }), b: { ...number, minimum: 1 } };
    expect(fitSchema('vertexai', inFields(older), 'tool')).toEqual({
      ...{ schema: inFields(current, { required: ['b'] }), moved: [] },
    });
  });

  it.each<[Json, path: string]>([
    [{ type: 'decimal' }, '.type'],
    [{ type: [] }, '.type'],
    [{ type: ['string', { type: 'null' }] }, '.type'],
    [{ required: [1] }, '.required'],
    [{ minimum: '1', exclusiveMinimum: true }, '.minimum'],
    [{ exclusiveMinimum: 'yes' }, '.exclusiveMinimum'],
    [{ maxLength: -1 }, '.maxLength'],
    [{ minItems: 1.5 }, '.minItems'],
    [{ uniqueItems: 'true' }, '.uniqueItems'],
    [{ description: null }, '.description'],
    [{ enum: 'a' }, '.enum'],
    [{ anyOf: [] }, '.anyOf'],
    [{ anyOf: [text, 'string'] }, '.anyOf.1'],
    [{ items: [text, null] }, '.items.1'],
    [{ items: tuple, prefixItems: tuple }, '.items'],
    [{ items: tuple, additionalItems: 'no' }, '.additionalItems'],
    [{ properties: [text] }, '.properties'],
    [{ $defs: { a: { not: 1 } } }, '.$defs.a.not'],
  ])('%j in a tool of Claude -> is refused with the place', (field, path) => {
    for (const id of ['anthropic', 'bedrock'] as const)
      expect(refusalOf(id, inField(field), 'tool')).toEqual([
        `properties.field${path}`,
        expect.stringMatching(/^must be /),
      ]);
    expect(fitSchema('openai', inField(field), 'tool').schema).toEqual(inField(field));
  });

  const named = (name: string) =>
    JSON.parse(`{"type":"object","properties":{${JSON.stringify(name)}:{"type":"string"}}}`);

  it.each(['$top', 'filter[id]', 'größe', 'first name', 'a/b', '', 'x'.repeat(65), 'a\n'])(
    'an argument %j -> Claude does not take it, and takes properties of its name below arguments',
    (name) => {
      const refused = [`properties.${name}`, expect.stringContaining('a name of 1 to 64')];
      const below = inField({ anyOf: [named(name)] }, { $defs: { d: named(name) } });
      for (const use of ['tool', 'strict-tool'] as const) {
        expect(refusalOf('anthropic', named(name), use)).toEqual(refused);
        expect(refusalOf('bedrock', named(name), use)).toEqual(refused);
        expect(refusalOf('anthropic', below, use)).toMatchObject({ moved: [] });
      }
      expect(refusalOf('vertexai', named(name), 'tool')).toMatchObject({ moved: [] });
    },
  );

  it.each(['a.b-c_D7', '7', '__proto__', 'x'.repeat(64)])('an argument %j -> Claude takes it', (name) => {
    expect(refusalOf('anthropic', named(name), 'tool')).toMatchObject({ moved: [] });
  });

  it('names each keyword of JSON Schema once, and none of a caller', () => {
    const odd = { canary: 1, $canary: 1, 'k\r\n': 1, ['__proto__']: 1, toString: 1 };
    const field = { ...text, ...odd, maxLength: 1, not: text };
    const { moved } = fitSchema('vertexai', { anyOf: [field, field] }, 'format');
    expect(moved).toEqual(['others', 'maxLength', 'not']);
  });
});
