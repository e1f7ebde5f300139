import type { ImportedPost, PostImport } from '../../db/posts/post-import.js';
import { doSeveral } from '../database.js';
import { giveSlugs, type SluggedPost, slugsOf } from './import-slugs.js';
import type { CheckedPost } from './imported-post.js';

/** A post that can be stored, with its name in reports. */
export interface NamedPost {
  name: string;
  post: ImportedPost;
}

/** The problem of a post whose import would undo the changes of others. */
export const describeStale = (id: string | undefined): string =>
  `the post ${id} was changed since this file was read; posts export shows how, --force writes over it`;

/** The problems of posts that were changed since their files were read, and now differ from them. */
export async function findStale(transfer: PostImport, posts: readonly NamedPost[]): Promise<string[]> {
  const known = new Map(
    posts.flatMap((named) => (named.post.id === undefined ? [] : [[named.post.id, named]])),
  );
  const changed = await transfer.changedSinceImport([...known.keys()]);
  const stale = new Set<NamedPost>();
  await doSeveral([...changed], async (id) => {
    const named = known.get(id);
    if (named !== undefined && (await transfer.compare(named.post)) === 'stale') stale.add(named);
  });
  return posts.flatMap((named) =>
    stale.has(named) ? [`${named.name}: ${describeStale(named.post.id)}`] : [],
  );
}

/**
 * Matches each post with one in the database, by its id or else its slug, or makes it a new one. The problems are ids
 * and slugs used twice, slugs of other posts, and posts that would be overwritten by accident.
 */
export async function identifyPosts(transfer: PostImport, checked: readonly CheckedPost[]) {
  const owners = await transfer.slugOwners(checked.flatMap((post) => Object.values(slugsOf(post))));
  const slugged = giveSlugs(checked, owners);
  const problems = [
    ...findRepeated('id', slugged, ({ checked }) => checked.post.id),
    ...findRepeated('slug', slugged, ({ slug }) => slug),
    ...findTaken(slugged),
    ...(await findAccidentalMatches(transfer, slugged)),
  ];
  return { posts: slugged.map((post) => ({ name: post.checked.name, post: identify(post) })), problems };
}

const identify = ({ checked: { post }, slug, owner }: SluggedPost): ImportedPost => ({
  ...post,
  slug,
  id: post.id ?? owner?.id,
});

function findRepeated(
  field: string,
  slugged: readonly SluggedPost[],
  read: (post: SluggedPost) => string | undefined,
): string[] {
  const firsts = new Map<string, string>();
  return slugged.flatMap((post) => {
    const { name } = post.checked;
    const value = read(post);
    const first = value === undefined ? undefined : firsts.get(value);
    if (value !== undefined && first === undefined) firsts.set(value, name);
    return first === undefined ? [] : [`${name}: ${field}: is the same as that of ${first}`];
  });
}

/** Posts whose slug is that of another post in the database. */
function findTaken(slugged: readonly SluggedPost[]): string[] {
  const ids = new Set(slugged.map(({ checked }) => checked.post.id));
  return slugged.flatMap(({ checked: { name, post }, owner }) => {
    if (owner === undefined) return [];
    const isOwn = post.id === undefined ? !ids.has(owner.id) : owner.id === post.id;
    return isOwn ? [] : [`${name}: slug: belongs to the post ${owner.id}`];
  });
}

/**
 * Posts that share nothing but the slug made from their title or file name with a post that came from no file. If both
 * have the same content, overwriting it does no harm.
 */
async function findAccidentalMatches(transfer: PostImport, slugged: readonly SluggedPost[]) {
  const matches = slugged.filter(
    ({ checked, owner }) =>
      checked.slug === undefined && checked.post.id === undefined && owner?.path === null,
  );
  const differing = new Set<SluggedPost>();
  await doSeveral(matches, async (post) => {
    if (['different', 'stale'].includes(await transfer.compare(identify(post)))) differing.add(post);
  });
  return matches.flatMap((post) =>
    differing.has(post)
      ? `${post.checked.name}: its title or file name makes the slug of the post ${post.owner?.id}, which came from no file; to write over that post give this one its id, else another slug`
      : [],
  );
}
