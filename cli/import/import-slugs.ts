import type { SlugOwner } from '../../db/posts/post-import.js';
import { type Slug, slugAsGiven, slugOfTitle } from '../../db/posts/slug.js';
import type { CheckedPost } from './imported-post.js';

/** The posts in the database that have certain slugs, by slug. */
export type SlugOwners = ReadonlyMap<string, SlugOwner>;

/**
 * The slug that a post names, or one made from the title that it names or from its file's name, with a spare one that is
 * the same at every import. A heading makes none: a file would be taken for another one when its text is changed.
 */
export function slugsOf({
  slug,
  mark,
  fallbackTitle,
  givenTitle,
}: Pick<CheckedPost, 'slug' | 'mark' | 'fallbackTitle' | 'givenTitle'>): Slug {
  if (slug !== undefined) return slugAsGiven(slug);
  const nothingLeft = slugOfTitle(null, mark).wanted;
  const fromTitle = slugOfTitle(givenTitle, mark);
  return fromTitle.wanted === nothingLeft ? slugOfTitle(fallbackTitle, mark) : fromTitle;
}

/** A post with the slug that it is to have, and the post that has it now. */
export interface SluggedPost {
  checked: CheckedPost;
  slug: string;
  holder: SlugOwner | undefined;
}

/**
 * Gives every post its slug. Where several would be made the same it stays with the file that its post came from, or
 * else goes to the first, and the others get their spare ones.
 */
export function giveSlugs(checked: readonly CheckedPost[], holders: SlugOwners): SluggedPost[] {
  const taken = new Set(checked.flatMap(({ slug }) => slug ?? []));
  const kept = checked.map((post) => post.slug ?? keptSlug(post, { holders, taken }));
  for (const slug of kept) if (slug !== undefined) taken.add(slug);
  return checked.map((post, index) => {
    const { wanted, spare } = slugsOf(post);
    const slug = kept[index] ?? (taken.has(wanted) ? spare : wanted);
    taken.add(slug);
    return { checked: post, slug, holder: holders.get(slug) };
  });
}

/** The slug that this very file has made before. */
function keptSlug(
  checked: CheckedPost,
  { holders, taken }: { holders: SlugOwners; taken: ReadonlySet<string> },
): string | undefined {
  const path = checked.post.source?.path;
  if (path === undefined) return undefined;
  const { wanted, spare } = slugsOf(checked);
  return [wanted, spare].find((slug) => !taken.has(slug) && holders.get(slug)?.path === path);
}
