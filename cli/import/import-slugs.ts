import type { SlugOwner } from '../../db/posts/post-import.js';
import { type Slug, slugAsGiven, slugOfTitle } from '../../db/posts/slug.js';
import type { CheckedPost } from './imported-post.js';

/** The posts in the database that have certain slugs, by slug. */
export type SlugOwners = ReadonlyMap<string, SlugOwner>;

/**
 * The slug that a post names, or one made from the title that it names or from its file's name, with a fallback that is
 * the same at every import. A heading makes none: after an edit the file would pass for another post.
 */
export function slugsOf({
  slug,
  suffix,
  fallbackTitle,
  givenTitle,
}: Pick<CheckedPost, 'slug' | 'suffix' | 'fallbackTitle' | 'givenTitle'>): Slug {
  if (slug !== undefined) return slugAsGiven(slug);
  const nothingLeft = slugOfTitle(null, suffix).wanted;
  const fromTitle = slugOfTitle(givenTitle, suffix);
  return fromTitle.wanted === nothingLeft ? slugOfTitle(fallbackTitle, suffix) : fromTitle;
}

/** A post with the slug that it is to have, and the post that has it now. */
export interface SluggedPost {
  checked: CheckedPost;
  slug: string;
  owner: SlugOwner | undefined;
}

/**
 * Gives every post its slug. Where several would be made the same it stays with the file that its post came from, or
 * else goes to the first, and the others get their fallbacks.
 */
export function giveSlugs(checked: readonly CheckedPost[], owners: SlugOwners): SluggedPost[] {
  const taken = new Set(checked.flatMap(({ slug }) => slug ?? []));
  const kept = checked.map((post) => post.slug ?? keptSlug(post, { owners, taken }));
  for (const slug of kept) if (slug !== undefined) taken.add(slug);
  return checked.map((post, index) => {
    const { wanted, fallback } = slugsOf(post);
    const slug = kept[index] ?? (taken.has(wanted) ? fallback : wanted);
    taken.add(slug);
    return { checked: post, slug, owner: owners.get(slug) };
  });
}

/** The slug that this very file has made before. */
function keptSlug(
  checked: CheckedPost,
  { owners, taken }: { owners: SlugOwners; taken: ReadonlySet<string> },
): string | undefined {
  const path = checked.post.source?.path;
  if (path === undefined) return undefined;
  const { wanted, fallback } = slugsOf(checked);
  return [wanted, fallback].find((slug) => !taken.has(slug) && owners.get(slug)?.path === path);
}
