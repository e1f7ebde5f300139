import fc from 'fast-check';
import { isBlank } from '../../../shared/conversation.js';

/** Begins every token of a request that no error and no log may ever show. */
export const canaryMark = 'Qgcanary';

/** Begins the names of fields, which the pointers of an error may show, and nothing else. */
export const nameMark = 'Qgname';

const token = (mark: string) => fc.nat(2 ** 31 - 1).map((number) => `${mark}${number.toString(36)}`);

export const canary = token(canaryMark);
export const nameCanary = token(nameMark);

/** Texts that trip over something somewhere: encodings, terminals, SQL, templates, Markdown, XML. */
const awkward = [
  '👩‍👩‍👧‍👦 🏳️‍🌈 🇪🇺',
  'e\u0301\u0301\u0301\u0301',
  '\u202eright to left\u202c \u0627\u0644\u0633\u0644\u0627\u0645',
  '\ufeffafter a byte order mark',
  'line\u2028paragraph\u2029next\u0085line',
  '\u0001\u0008\u001b[31mred\u001b[0m\u007f',
  'noncharacters \ufffe \uffff \u{1ffff} \u{10ffff}',
  "'; DROP TABLE posts; -- \\' \" ` $1 :name ?",
  '<script>alert(1)</script><img src=x onerror=alert(1)>]]><![CDATA[&lt;&#0;&#x1;',
  '{{constructor}} #{7*7} %s %n %00 \\u0000 \\x00',
  '../../etc/passwd C:\\con .',
  `${'> '.repeat(40)}deep ${'*'.repeat(300)} ${'['.repeat(300)}${']('.repeat(100)}`,
  '[a](javascript:alert(1)) ![b](data:image/png;base64,AA==) <https://e.example> | a |\n|---|\n| b |',
  '\r\n\r\nHTTP/1.1 200 OK\r\n\r\n',
  'true',
  'null',
  '0',
  '-1e309',
];

/** Any well-formed text without NUL, with a canary in it more often than not. */
export const text: fc.Arbitrary<string> = fc
  .tuple(
    fc.option(canary, { nil: '', freq: 3 }),
    fc.oneof(
      fc.constantFrom(...awkward),
      fc.lorem({ maxCount: 8 }),
      fc.string({ unit: 'grapheme', maxLength: 40 }),
      fc.string({ unit: 'binary', maxLength: 40 }),
    ),
  )
  .map(([mark, words]) => `${mark}${words.replaceAll('\0', '')}`);

/** A text of at least one visible and at most so many characters, sometimes of exactly so many. */
export const visibleText = (most: number): fc.Arbitrary<string> =>
  fc.oneof(
    { weight: 8, arbitrary: text.map((any) => cut(isBlank(any) ? `x${any}` : any, most)) },
    { weight: 1, arbitrary: exactly(most) },
  );

/** A text of exactly so many characters (code points), some of which are two UTF-16 units. */
export const exactly = (characters: number): fc.Arbitrary<string> =>
  fc.constantFrom('x', '🎉', 'é').map((character) => character.repeat(characters));

const cut = (any: string, most: number) => Array.from(any).slice(0, most).join('');

/** Texts that a blog must refuse: they show nothing, or cannot be stored. */
export const unstorable: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom('', ' ', '\t\n', '\u200b\u00ad', '\u3000\ufeff'),
  text.map((any) => `${any}\0`),
  fc.constantFrom('\ud83d', '\udc00 first', 'a \ud800\ud800 b'),
);
