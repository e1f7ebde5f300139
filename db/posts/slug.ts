import slugify from '@sindresorhus/slugify';
import type { Drizzle } from '../database/connections.js';
import { alias, eq, exists, type Placeholder, type SQL, sql } from '../database/drizzle.js';
import { posts } from '../schema.js';

/** The slug of a post, and the one it gets when another post has that. */
export interface Slug {
  wanted: string;
  /** The same as `wanted` where there is no alternative. */
  fallback: string;
}

/**
 * The slug that a post gets from its title: letters, digits and hyphens, at most 89 characters, 199 bytes of UTF-8.
 * Letters without a usual spelling in ASCII (Chinese, Hindi, Hebrew, …) stay, as RFC 3987 has them in addresses.
 */
export function slugOfTitle(title: string | null, id: string): Slug {
  const suffix = id.slice(-suffixLength);
  const words = shorten(wordsOf(title ?? ''));
  if (words === '') return slugAsGiven(`post-${suffix}`);
  return { wanted: words, fallback: `${words}-${suffix}` };
}

/** A slug without an alternative. */
export const slugAsGiven = (slug: string): Slug => ({ wanted: slug, fallback: slug });

/** The SQL for a slug that is free at the time of its statement; only the unique index knows whether it stays so. */
export function freeSlug(db: Drizzle, { wanted, fallback }: Record<keyof Slug, string | Placeholder>): SQL {
  const other = alias(posts, 'other');
  const taken = exists(db.select({ one: sql`1` }).from(other).where(eq(other.slug, wanted)));
  return sql`case when ${taken} then ${fallback} else ${wanted} end`;
}

/** The last hexadecimal digits of a UUIDv7 are random. */
const suffixLength = 8;
const maxCharacters = 80;
/** With the suffix, an id and an ending it is a file's name, of 255 bytes at most. */
const maxBytes = 190;

/** Scripts that slugify writes in ASCII, and what belongs to no script. */
const known = String.raw`[\p{scx=Latn}\p{scx=Grek}\p{scx=Cyrl}\p{scx=Arab}\p{scx=Armn}\p{scx=Geor}\p{scx=Thaa}\p{scx=Zyyy}]`;
/** A letter or digit of any other script, and the ones behind it with their marks and joiners. */
const ownLetters = new RegExp(
  String.raw`([[\p{L}\p{N}]--${known}](?:[\u200c\u200d]*[[\p{L}\p{M}\p{N}]--${known}])*)`,
  'v',
);

/** Own letters are at the odd places, because the pattern has a group. */
function wordsOf(title: string): string {
  const own = (text: string) => text.replace(/[\u200c\u200d]/g, '').normalize('NFC');
  const parts = title.normalize('NFC').split(ownLetters);
  const words = parts.map((part, n) => (n % 2 === 1 ? own(part) : slugify(part, { decamelize: false })));
  const slug = words.filter((word) => word !== '').join('-');
  return slug.toLowerCase();
}

/** Cut behind a whole word, unless the first one is too long by itself, and never between a letter and its marks. */
function shorten(slug: string): string {
  let end = 0;
  for (const [letter] of slug.matchAll(/\P{M}\p{M}*/gu)) {
    const text = slug.slice(0, end + letter.length);
    if (text.length > maxCharacters || Buffer.byteLength(text) > maxBytes) {
      const word = slug.lastIndexOf('-', end);
      return slug.slice(0, word > 0 ? word : end);
    }
    end += letter.length;
  }
  return slug;
}
