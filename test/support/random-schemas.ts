import fc from 'fast-check';

export type RandomSchema = Record<string, unknown>;

/** Names of arguments, and of properties below them: Claude does not take all of these for arguments. */
const argumentNames = ['a', 'city', 'constructor', 'toString', '7'];
const names = [...argumentNames, 'größe', 'with space', '$value', 'a/b~c', '漢🦉'];
const described = fc.option(fc.constantFrom('What it is.', '"quoted" \\ and\nlines', '🦉'), {
  nil: undefined,
});
const texts = fc.constantFrom('', 'celsius', 'with "quotes"', 'ß漢🦉', '\u0000\n', '{"not":"an object"}');

const primitives: fc.Arbitrary<RandomSchema> = fc.oneof(
  fc.record({ type: fc.constant('string') }),
  fc
    .tuple(fc.nat(5), fc.nat(20))
    .map(([minLength, more]) => ({ type: 'string', minLength, maxLength: minLength + more })),
  fc
    .tuple(fc.constantFrom('integer', 'number'), fc.integer({ min: -1000, max: 1000 }))
    .map(([type, minimum]) => ({ type, minimum, maximum: minimum + 1000 })),
  fc.constantFrom('integer', 'number', 'boolean', 'null').map((type) => ({ type })),
  fc.uniqueArray(texts, { minLength: 1, maxLength: 4 }).map((values) => ({ type: 'string', enum: values })),
  fc.constantFrom(['string', 'null'], ['integer', 'null'], ['number', 'string']).map((type) => ({ type })),
  fc.constant({ $ref: '#/$defs/shared' }),
);

/** Schemas of many shapes, of what callers declare: nested, referring, bounded, described. */
const { schema } = fc.letrec<{ schema: RandomSchema; object: RandomSchema }>((tie) => ({
  schema: fc
    .tuple(
      fc.oneof(
        { maxDepth: 4, withCrossShrink: true },
        primitives,
        tie('object'),
        fc.tuple(tie('schema'), fc.nat(3)).map(([items, minItems]) => ({ type: 'array', items, minItems })),
        fc.array(tie('schema'), { minLength: 1, maxLength: 3 }).map((anyOf) => ({ anyOf })),
      ),
      described,
    )
    .map(([made, description]) => ({ ...made, ...(description !== undefined && { description }) })),
  object: objectOf(tie('schema'), names),
}));

function objectOf(property: fc.Arbitrary<RandomSchema>, own: string[]): fc.Arbitrary<RandomSchema> {
  return fc
    .tuple(
      fc.dictionary(fc.constantFrom(...own), property, { maxKeys: 4, noNullPrototype: true }),
      fc.array(fc.boolean(), { minLength: 4, maxLength: 4 }),
      fc.constantFrom({}, { additionalProperties: false }),
    )
    .map(([properties, isRequired, rest]) => ({
      ...{ type: 'object', properties },
      required: Object.keys(properties).filter((_, n) => isRequired[n]),
      ...rest,
    }));
}

const shared = {
  shared: {
    type: 'object',
    properties: { kind: { enum: ['one', 'two'], type: 'string' } },
    required: ['kind'],
  },
};

/** So many schemas of objects, always the same. */
export const randomSchemas = (count: number): RandomSchema[] =>
  fc
    .sample(objectOf(schema, argumentNames), { numRuns: count, seed: 25 })
    .map((made) => (JSON.stringify(made).includes('"$ref"') ? { ...made, $defs: shared } : made));
