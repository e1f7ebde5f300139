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

/** The slug that a post gets from its title: ASCII letters, digits and hyphens, at most 89 characters. */
export function slugOfTitle(title: string | null, id: string): Slug {
  const suffix = id.slice(-suffixLength);
  const words = shorten(slugify(title ?? '', { decamelize: false }));
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

/** Cut behind a whole word, unless the first one is too long by itself. */
function shorten(slug: string): string {
  if (slug.length <= maxCharacters) return slug;
  const end = slug.lastIndexOf('-', maxCharacters);
  return slug.slice(0, end > 0 ? end : maxCharacters);
}
