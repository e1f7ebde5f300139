import { earliestTime } from '../output/fleet-tables.js';
import type { Field } from './markdown-file.js';

/** A field by which programs keep a post from readers. */
interface HidingField {
  /** In lower case, without `_` and `-`. */
  name: string;
  /** Whether a value that is a text hides the post; any other value does. */
  hides: (text: string) => boolean;
  /** A page of a program that has the field; null where only themes and sites of people have it. */
  source: string | null;
}

const isNo = (text: string): boolean => /^\s*(?:false|no?|off|0)\s*$/i.test(text);
const isYes = (text: string): boolean => !isNo(text);
const isRestricted = (text: string): boolean => !/^\s*public\s*$/i.test(text);
/** NaN for what is no time; `Date` reads forms that posts here do not have, such as Astro's `Jul 08 2030`. */
const timeOf = (text: string): number => Date.parse(earliestTime(text) ?? text);
const isFuture = (text: string): boolean => timeOf(text) > Date.now();
const isNotFuture = (text: string): boolean => !isFuture(text);
const isNotPast = (text: string): boolean => !(timeOf(text) <= Date.now());
const isNotYet = (text: string): boolean => isNo(text) || isFuture(text);

const hugo = 'https://gohugo.io/content-management/front-matter/';
const grav = 'https://learn.getgrav.org/17/content/headers';

/** All that make a draft. Where programs differ in what a field means, it hides the post if it does so in one. */
export const hidingFields: readonly HidingField[] = [
  { name: 'draft', hides: isYes, source: hugo },
  { name: 'isdraft', hides: isYes, source: null },
  { name: 'hidden', hides: isYes, source: 'https://github.com/prinsss/hexo-hide-posts' },
  { name: 'private', hides: isYes, source: 'https://github.com/kkga/ter' },
  {
    name: 'unlisted',
    hides: isYes,
    source: 'https://docusaurus.io/docs/api/plugins/@docusaurus/plugin-content-blog',
  },
  { name: 'password', hides: isYes, source: 'https://github.com/D0n9X1n/hexo-blog-encrypt' },
  { name: 'headless', hides: isYes, source: hugo },
  { name: 'build', hides: isYes, source: 'https://gohugo.io/content-management/build-options/' },
  { name: 'eleventyexcludefromcollections', hides: isYes, source: 'https://www.11ty.dev/docs/collections/' },
  { name: 'permalink', hides: isNo, source: 'https://www.11ty.dev/docs/permalinks/' },
  { name: 'render', hides: isNo, source: 'https://www.getzola.org/documentation/content/page/' },
  { name: 'routable', hides: isNo, source: grav },
  { name: 'published', hides: isNotYet, source: 'https://jekyllrb.com/docs/front-matter/' },
  { name: 'publish', hides: isNotYet, source: 'https://help.obsidian.md/publish/publish' },
  { name: 'public', hides: isNotYet, source: null },
  { name: 'visibility', hides: isRestricted, source: 'https://ghost.org/docs/content-api/' },
  { name: 'date', hides: isNotPast, source: hugo },
  { name: 'publishdate', hides: isNotPast, source: hugo },
  { name: 'publishedat', hides: isNotPast, source: 'https://ghost.org/docs/content-api/' },
  { name: 'pubdate', hides: isNotPast, source: hugo },
  { name: 'pubdatetime', hides: isNotPast, source: 'https://github.com/satnaing/astro-paper' },
  { name: 'expirydate', hides: isNotFuture, source: hugo },
  { name: 'unpublishdate', hides: isNotFuture, source: grav },
];

const fieldsByName = new Map(hidingFields.map((field) => [field.name, field]));

/** Names the fields of a post, and the parts of its path, for which its program does not show it. */
export const reasonsToHide = (
  fields: ReadonlyMap<string, Field>,
  implied: { day: string | undefined; hiddenBy: readonly string[] },
): string[] => [
  ...[...fields].flatMap(([name, { value }]) => {
    const field = fieldsByName.get(name.toLowerCase().replace(/[_-]/g, ''));
    // A value that is no text, such as a reference (`published: *no`), is not understood.
    return field && value !== null && (typeof value !== 'string' || field.hides(value)) ? [name] : [];
  }),
  ...implied.hiddenBy,
  ...(implied.day !== undefined && fields.get('date')?.value == null && isFuture(implied.day)
    ? ['date']
    : []),
];
