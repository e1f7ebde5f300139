import fc from 'fast-check';
import type { PlannedBody } from './plan.js';
import { canary, nameCanary, text } from './texts.js';

const anything = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.constantFrom<unknown>(
      null,
      true,
      0,
      -0,
      1e308,
      Number.MAX_SAFE_INTEGER + 1,
      '',
      [],
      {},
      [[]],
      [null],
    ),
  },
  { weight: 1, arbitrary: canary },
  { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 3 }) },
  { weight: 1, arbitrary: canary.map((mark) => [mark, { [mark]: mark }]) },
  { weight: 1, arbitrary: canary.map((mark) => ({ toString: mark, length: 3, 0: mark })) },
);

/** Values of every type, among them those that code mistakes for others. */
export const wrongValue: fc.Arbitrary<unknown> = anything;

/** The object with one of its fields, or all of it, of the wrong type. */
export const withWrongType = (
  objects: fc.Arbitrary<object>,
  fields: readonly string[],
): fc.Arbitrary<unknown> =>
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc
        .tuple(objects, fc.constantFrom(...fields), anything)
        .map(([object, field, value]) => ({ ...object, [field]: value })),
    },
    { weight: 1, arbitrary: anything },
    { weight: 1, arbitrary: objects.map((object) => [object]) },
  );

const unknownFields: fc.Arbitrary<[string, unknown][]> = fc.array(
  fc.tuple(
    fc.oneof(
      nameCanary,
      text.map((any) => any.replaceAll(/Qgcanary/g, 'Qgname')),
      fc.constantFrom('', 'id', 'version', 'Content', '~/', 'constructor', 'toString', 'hasOwnProperty'),
    ),
    anything,
  ),
  { minLength: 1, maxLength: 30 },
);

/** The object with unknown fields, which is fine, some of them of the prototype. */
export const withUnknownFields = <T extends object>(objects: fc.Arbitrary<T>): fc.Arbitrary<unknown> =>
  fc.tuple(objects, unknownFields).map(([object, fields]) => ({ ...Object.fromEntries(fields), ...object }));

const nest = (depth: number, [open, close]: readonly [string, string]) =>
  `${open.repeat(depth)}1${close.repeat(depth)}`;

/** Members that are put at the end of an object's text: duplicates, numbers beyond all bounds, nesting. */
const members: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(
    '"content":"twice"',
    '"content":5',
    '"messages":1',
    '"title":"t","title":null',
    '"status":"draft"',
  ),
  fc.constantFrom(
    '"__proto__":{"content":"x"}',
    '"__proto__":null',
    '"constructor":{"prototype":{"x":1}}',
    '"__proto__":[]',
  ),
  fc.constantFrom(
    '"n":1e400',
    '"n":-1e-400',
    `"n":${'9'.repeat(5000)}`,
    '"version":123456789012345678901234567890',
  ),
  fc
    .tuple(
      fc.constantFrom(5, 30, 31, 32, 33, 200, 50_000),
      fc.constantFrom(['[', ']'], ['{"a":', '}'] as const),
    )
    .map(([depth, brackets]) => `"deep":${nest(depth, brackets as [string, string])}`),
);

const sound = (value: unknown): string => JSON.stringify(value) ?? 'null';

/** The value as text: as it is, spaced out, or with more members. */
const written = (values: fc.Arbitrary<unknown>): fc.Arbitrary<string> =>
  fc.oneof(
    { weight: 12, arbitrary: values.map(sound) },
    {
      weight: 1,
      arbitrary: values.map((value) => `\r\n\t ${JSON.stringify(value, undefined, 2) ?? 'null'} \n`),
    },
    { weight: 1, arbitrary: values.map((value) => sound(value).replaceAll(/[^\x20-\x7e]/g, escaped)) },
    {
      weight: 2,
      arbitrary: fc
        .tuple(values.map(sound), members)
        .map(([json, member]) => (/^\{.+\}$/s.test(json) ? `${json.slice(0, -1)},${member}}` : json)),
    },
  );

const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** Text that is not quite JSON, or not at all. */
const garbage = (values: fc.Arbitrary<unknown>): fc.Arbitrary<string> =>
  fc.oneof(
    values.map((value) => `\ufeff${sound(value)}`),
    values.map((value) => `${sound(value)}x`),
    values.map((value) => sound(value).slice(0, -1)),
    values.map((value) => sound(value).replaceAll('"', "'")),
    values.map((value) => `/* */ ${sound(value)}`),
    fc.constantFrom(
      '',
      ' ',
      '\0',
      'NaN',
      'undefined',
      '{"content":1e}',
      '{"content":"\t"}',
      '{"content":"\\x"}',
      '{,}',
      '[1,]',
    ),
    fc.constantFrom(
      '['.repeat(100_000),
      '{"a":'.repeat(20_000),
      '"'.repeat(999),
      '{"content":"\\ud83',
      'content=x&title=y',
    ),
    fc.string({ unit: 'binary', maxLength: 200 }),
    canary,
  );

/** The value as a body; now and then compressed. */
export const jsonBody = (values: fc.Arbitrary<unknown>): fc.Arbitrary<PlannedBody> =>
  fc
    .tuple(written(values), fc.option(fc.constantFrom('gzip', 'deflate', 'br'), { freq: 19 }))
    .map(
      ([json, compressed]) =>
        ({ text: json, bytes: 'utf8', ...(compressed && { compressed }) }) as PlannedBody,
    );

/** A body that is no JSON, or too large. */
export const brokenBody = (values: fc.Arbitrary<unknown>): fc.Arbitrary<PlannedBody> =>
  fc.oneof(
    { weight: 8, arbitrary: garbage(values).map((any): PlannedBody => ({ text: any, bytes: 'utf8' })) },
    { weight: 1, arbitrary: values.map((value): PlannedBody => ({ text: sound(value), bytes: 'utf16le' })) },
    {
      weight: 1,
      arbitrary: values.map((value): PlannedBody => ({ text: `${sound(value)}\xe9\xff`, bytes: 'latin1' })),
    },
    {
      weight: 2,
      arbitrary: fc.tuple(fc.constantFrom(1_048_577, 1_500_000), fc.constantFrom('gzip', undefined)).map(
        ([size, compressed]) =>
          ({
            text: `"${'x'.repeat(size - 2)}"`,
            bytes: 'utf8',
            ...(compressed && { compressed }),
          }) as PlannedBody,
      ),
    },
  );

interface Fields {
  sound: fc.Arbitrary<object>;
  /** One field that is refused. */
  beyond: fc.Arbitrary<object>;
  names: readonly string[];
}

/** Bodies of these fields: sound, with more than these, with a field that is refused or of a wrong type, or broken. */
export const bodiesOf = ({ sound, beyond, names }: Fields): fc.Arbitrary<PlannedBody> =>
  fc.oneof(
    { weight: 12, arbitrary: jsonBody(sound) },
    { weight: 3, arbitrary: jsonBody(withUnknownFields(sound)) },
    {
      weight: 4,
      arbitrary: jsonBody(fc.tuple(sound, beyond).map(([some, fault]) => ({ ...some, ...fault }))),
    },
    { weight: 3, arbitrary: jsonBody(withWrongType(sound, names)) },
    { weight: 2, arbitrary: brokenBody(sound) },
  );
