import type { SlugOwner } from '../../db/posts/post-import.js';
import { type Slug, slugAsGiven, slugOfTitle } from '../../db/posts/slug.js';
import type { CheckedPost } from './imported-post.js';

/** The posts in the database that have certain slugs, by slug. */
export type SlugOwners = ReadonlyMap<string, SlugOwner>;

/**
 * The slug that a post's fields give, or one made from the title that they give or from the file's name, with a
 * fallback that is the same at every import. A heading is not used: after an edit the file would count as another post.
 */
export function slugsOf(post: Pick<CheckedPost, 'slug' | 'suffix' | 'fallbackTitle' | 'givenTitle'>): Slug {
  const { slug, suffix, fallbackTitle, givenTitle } = post;
  if (slug !== undefined) return slugAsGiven(slug);
  const emptySlug = slugOfTitle(null, suffix).wanted;
  const fromTitle = slugOfTitle(givenTitle, suffix);
  return fromTitle.wanted === emptySlug ? slugOfTitle(fallbackTitle, suffix) : fromTitle;
}

/** A post with the slug that it will have, and the post that has this slug now. */
export interface SluggedPost {
  checked: CheckedPost;
  slug: string;
  owner: SlugOwner | undefined;
}

/**
 * Gives every post its slug. Where several would get the same one, it stays with the file that already has it, or else
 * goes to the first, and the others get their fallbacks.
 */
export function giveSlugs(checked: readonly CheckedPost[], owners: SlugOwners): SluggedPost[] {
  const taken = new Set(checked.flatMap(({ slug }) => slug ?? []));
  const settled = checked.map((post) => post.slug ?? earlierSlug(post, { owners, taken }));
  for (const slug of settled) if (slug !== undefined) taken.add(slug);
  return checked.map((post, index) => {
    const { wanted, fallback } = slugsOf(post);
    const slug = settled[index] ?? (taken.has(wanted) ? fallback : wanted);
    taken.add(slug);
    return { checked: post, slug, owner: owners.get(slug) };
  });
}

/** The slug that an earlier import of the same file has given. */
function earlierSlug(
  checked: CheckedPost,
  { owners, taken }: { owners: SlugOwners; taken: ReadonlySet<string> },
): string | undefined {
  const path = checked.post.source?.path;
  if (path === undefined) return undefined;
  const { wanted, fallback } = slugsOf(checked);
  return [wanted, fallback].find((slug) => !taken.has(slug) && owners.get(slug)?.path === path);
}
