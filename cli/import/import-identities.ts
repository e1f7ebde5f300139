import type { ImportedPost, PostImport } from '../../db/posts/post-import.js';
import { doSeveral } from '../database.js';
import { giveSlugs, type SluggedPost, slugsOf } from './import-slugs.js';
import type { CheckedPost } from './imported-post.js';

/** A post that can be stored, with what reports call it. */
export interface NamedPost {
  name: string;
  post: ImportedPost;
}

/** What is said of a post that would take back what others changed. */
export const describeStale = (id: string | undefined): string =>
  `the post ${id} was changed since this file was read; posts export shows how, --force writes over it`;

/** The problems of posts that were changed since their files were read, and not to what these say now. */
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
 * Finds out which post of the database each one is, by its id or else its slug, or makes it a new one. The problems are
 * ids and slugs used twice, slugs of other posts, and posts that would be written over by chance.
 */
export async function identifyPosts(
  transfer: PostImport,
  checked: readonly CheckedPost[],
): Promise<{ posts: NamedPost[]; problems: string[] }> {
  const owners = await transfer.slugOwners(checked.flatMap((post) => Object.values(slugsOf(post))));
  const slugged = giveSlugs(checked, owners);
  const problems = [
    ...findRepeated('id', slugged, ({ checked }) => checked.post.id),
    ...findRepeated('slug', slugged, ({ slug }) => slug),
    ...findHeld(slugged),
    ...(await findMetByChance(transfer, slugged)),
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
function findHeld(slugged: readonly SluggedPost[]): string[] {
  const ids = new Set(slugged.map(({ checked }) => checked.post.id));
  return slugged.flatMap(({ checked: { name, post }, owner }) => {
    if (owner === undefined) return [];
    const isOwn = post.id === undefined ? !ids.has(owner.id) : owner.id === post.id;
    return isOwn ? [] : [`${name}: slug: belongs to the post ${owner.id}`];
  });
}

/**
 * Posts that have nothing in common with the one in the database but what their titles or file names make: that one
 * came from no file. To say the same as it does no harm.
 */
async function findMetByChance(transfer: PostImport, slugged: readonly SluggedPost[]): Promise<string[]> {
  const met = slugged.filter(
    ({ checked, owner }) =>
      checked.slug === undefined && checked.post.id === undefined && owner?.path === null,
  );
  const differing = new Set<SluggedPost>();
  await doSeveral(met, async (post) => {
    if (['different', 'stale'].includes(await transfer.compare(identify(post)))) differing.add(post);
  });
  return met.flatMap((post) =>
    differing.has(post)
      ? `${post.checked.name}: its title or file name makes the slug of the post ${post.owner?.id}, which came from no file; to write over that post give this one its id, else another slug`
      : [],
  );
}
