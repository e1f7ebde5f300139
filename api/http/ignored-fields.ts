/** A field of a body that is not known. Its caller has chosen the name, which is shortened and escaped. */
export interface UnknownField {
  /** The name as `X-Ignored-Fields` has it. */
  readonly name: string;
  readonly pointer: string;
}

/** The unknown fields of the object at this path of the body; the limit on a body's values bounds them. */
export const unknownFieldsOf = (
  value: object,
  known: ReadonlySet<string>,
  path: readonly (string | number)[] = [],
): UnknownField[] =>
  Object.keys(value)
    .filter((name) => !known.has(name))
    .map((name) => ({
      name: [...path.map((step) => (typeof step === 'number' ? '*' : step)), fieldName(name)].join('/'),
      pointer: ['', ...path, pointerStep(name)].join('/'),
    }));

const maxFieldsListed = 20;

/** The value of `X-Ignored-Fields`: each name once; three dots stand for those left out. */
export function listFields(names: Iterable<string>): string {
  const listed = new Set<string>();
  for (const name of names) {
    if (listed.size === maxFieldsListed && !listed.has(name)) return `${[...listed].join(', ')}, ...`;
    listed.add(name);
  }
  return [...listed].join(', ');
}

/** A name, percent-encoded, for a header. */
const fieldName = (name: string): string => shorten(name, encodeURIComponent) || '""';

/** A name as a reference token of a JSON pointer (RFC 6901). */
export const pointerStep = (name: string): string =>
  shorten(name, (character) => pointerEscapes.get(character) ?? character);

const pointerEscapes = new Map([
  ['~', '~0'],
  ['/', '~1'],
]);

const maxName = 60;

/** The name with each character escaped, shortened to `maxName` without cutting an escape. */
function shorten(name: string, encode: (character: string) => string): string {
  let shortened = '';
  for (const character of name) {
    const next = encode(character);
    if (shortened.length + next.length > maxName) return `${shortened}...`;
    shortened += next;
  }
  return shortened;
}
