import fc from 'fast-check';
import type { RequestBody } from './request.js';
import { canary } from './texts.js';

const utf8 = (text: string): RequestBody => ({ text, bytes: 'utf8' });

const garbage = [
  ...[
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
  ],
  ...[
    '['.repeat(100_000),
    '{"a":'.repeat(20_000),
    '"'.repeat(999),
    '{"content":"\\ud83',
    'content=x&title=y',
  ],
];

/** Text that is not quite JSON, or not at all, or in another encoding. */
export const brokenTexts = (json: string): fc.Arbitrary<RequestBody> =>
  fc.oneof(
    fc
      .constantFrom(
        `\ufeff${json}`,
        `${json}x`,
        json.slice(0, -1),
        json.replaceAll('"', "'"),
        `/* */ ${json}`,
      )
      .map(utf8),
    fc.constantFrom(...garbage).map(utf8),
    fc.oneof(canary, fc.string({ unit: 'binary', maxLength: 200 })).map(utf8),
    fc.constantFrom<RequestBody>(
      { text: json, bytes: 'utf16le' },
      { text: `${json}\xe9\xff`, bytes: 'latin1' },
    ),
  );

const nested = (depth: number, [open = '', close = '']: readonly string[]) =>
  `"deep":${open.repeat(depth)}1${close.repeat(depth)}`;
const members = [
  ...['"content":"twice"', '"content":5', '"messages":1', '"title":"t","title":null', '"status":"draft"'],
  ...[
    '"__proto__":{"content":"x"}',
    '"__proto__":null',
    '"constructor":{"prototype":{"x":1}}',
    '"__proto__":[]',
  ],
  ...['"n":1e400', '"n":-1e-400', `"n":${'9'.repeat(5000)}`, '"version":123456789012345678901234567890'],
  ...[5, 30, 31, 32, 33, 200, 50_000].flatMap((depth) => [
    nested(depth, ['[', ']']),
    nested(depth, ['{"a":', '}']),
  ]),
];
const withMember = (json: string, member: string) =>
  json === '{}' ? `{${member}}` : `${json.slice(0, -1)},${member}}`;

/** The object with more members at its end: duplicates, numbers beyond all bounds, prototypes, nesting. */
export const moreMembers = (json: string): fc.Arbitrary<RequestBody> =>
  fc.constantFrom(...members).map((member) => utf8(withMember(json, member)));

/** The object in more bytes than are read, or that few compressed bytes become. */
export const tooLarge = (json: string): fc.Arbitrary<RequestBody> =>
  fc
    .tuple(fc.constantFrom(1_048_577, 1_500_000), fc.constantFrom('gzip' as const, undefined))
    .map(([size, compressed]) => ({
      ...utf8(withMember(json, `"metadata":"${'x'.repeat(size)}"`)),
      compressed,
    }));
