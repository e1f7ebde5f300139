import type { ImportedPost } from '../db/post-transfer.js';
import { slugOfTitle } from '../db/slug.js';
import type { CheckedPost } from './imported-post.js';

/** A post that can be stored, with what reports call it. */
export interface NamedPost {
  name: string;
  post: ImportedPost;
}

/**
 * Gives every post its slug: its own, or one made from its title or its file's name. When several would be made the
 * same, all but the first get a mark that stays the same at every import. The problems are ids and slugs used twice.
 */
export function giveSlugs(checked: readonly CheckedPost[]): { posts: NamedPost[]; problems: string[] } {
  const taken = new Set(checked.flatMap(({ slug }) => slug ?? []));
  const posts = checked.map(({ name, post, slug, ...rest }) => {
    const own = slug ?? makeSlug({ title: post.title, ...rest }, taken);
    taken.add(own);
    return { name, post: { ...post, slug: own } };
  });
  return { posts, problems: [...findRepeated(posts, 'id'), ...findRepeated(posts, 'slug')] };
}

type Origin = Pick<CheckedPost, 'fallbackTitle' | 'mark'> & Pick<ImportedPost, 'title'>;

function makeSlug({ title, fallbackTitle, mark }: Origin, taken: ReadonlySet<string>): string {
  const nothingLeft = slugOfTitle(null, mark).wanted;
  const fromTitle = slugOfTitle(title, mark);
  const { wanted, spare } = fromTitle.wanted === nothingLeft ? slugOfTitle(fallbackTitle, mark) : fromTitle;
  return taken.has(wanted) ? spare : wanted;
}

function findRepeated(posts: readonly NamedPost[], field: 'id' | 'slug'): string[] {
  const firsts = new Map<string, string>();
  return posts.flatMap(({ name, post }) => {
    const value = post[field];
    const first = value === undefined ? undefined : firsts.get(value);
    if (value !== undefined && first === undefined) firsts.set(value, name);
    return first === undefined ? [] : [`${name}: ${field}: is the same as that of ${first}`];
  });
}
