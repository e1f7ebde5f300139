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
  '👩‍👩‍👧‍👦 🏳️‍🌈 e\u0301\u0301\u0301 \u202eright to left\u202c \ufeffline\u2028paragraph\u2029next\u0085line',
  '\u0001\u0008\u001b[31mred\u001b[0m\u007f noncharacters \ufffe \uffff \u{1ffff} \u{10ffff}',
  "'; DROP TABLE posts; -- \\' \" ` $1 :name ? {{constructor}} #{7*7} %s %n %00 \\u0000 \\x00",
  '<script>alert(1)</script><img src=x onerror=alert(1)>]]><![CDATA[&lt;&#0;&#x1;',
  '../../etc/passwd C:\\con . \r\n\r\nHTTP/1.1 200 OK\r\n\r\n',
  `${'> '.repeat(40)}deep ${'*'.repeat(300)} ${'['.repeat(300)}${']('.repeat(100)}`,
  '[a](javascript:alert(1)) ![b](data:image/png;base64,AA==) <https://e.example> | a |\n|---|\n| b |',
  ...['true', 'null', '0', '-1e309', '"a b" or -c', '((', "':*&|!"],
];

/** Any well-formed text without NUL, with a canary in it more often than not. */
const text: fc.Arbitrary<string> = fc
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

/** A text of at least one visible and at most so many characters. */
export const visibleText = (most: number): fc.Arbitrary<string> =>
  text.map((any) =>
    Array.from(isBlank(any) ? `x${any}` : any)
      .slice(0, most)
      .join(''),
  );

/** Every character that a header may hold; in latin1, as Node sends it. */
export const headerText = fc.string({
  unit: fc
    .integer({ min: 0x20, max: 0xff })
    .filter((code) => code !== 0x7f)
    .map((code) => String.fromCharCode(code)),
  maxLength: 60,
});

/** Values of every type, among them those that code mistakes for others. */
export const anyValue: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(null, true, 0, -0, 1e308, Number.MAX_SAFE_INTEGER + 1, '', [], {}, [[]], [null]),
  fc.jsonValue({ maxDepth: 3 }),
  canary.chain((mark) =>
    fc.constantFrom<unknown>(mark, [mark, { [mark]: mark }], { toString: mark, length: 3, 0: mark }),
  ),
);
