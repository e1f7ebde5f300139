/** Names of ignored fields, which the caller has chosen: shortened and escaped for headers and JSON pointers. */

/** Fields that one answer lists. */
const maxFieldsListed = 20;

/** The value of `X-Ignored-Fields`: names from `fieldName`, each once; three dots stand for those left out. */
export function listFields(names: Iterable<string>): string {
  const listed = new Set<string>();
  for (const name of names) {
    if (listed.size === maxFieldsListed && !listed.has(name)) return `${[...listed].join(', ')}, ...`;
    listed.add(name);
  }
  return [...listed].join(', ');
}

/** A name, percent-encoded, for a header. */
export const fieldName = (name: string): string => shorten(name, encodeURIComponent) || '""';

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
