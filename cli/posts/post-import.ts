import { postgresErrorOf } from '../../db/database/errors.js';
import type { Outcome, PostTransfer } from '../../db/posts/post-transfer.js';
import { doSeveral, isUnavailable } from '../database.js';
import { printable } from '../output/fleet-tables.js';
import type { CheckedPost } from './imported-post.js';

/** A post that can be stored, with its name in reports. */
export type NamedPost = Pick<CheckedPost, 'name' | 'post'>;

/** The problems of posts that may not be stored; nothing is written. */
export async function findProblems(transfer: PostTransfer, posts: readonly NamedPost[], force: boolean) {
  const outcomes = new Map<NamedPost, Outcome>();
  await doSeveral(posts, async (named) => void outcomes.set(named, await transfer.plan(named.post, force)));
  const repeated = (field: string, read: (named: NamedPost) => string | undefined) =>
    [...Map.groupBy(posts, read).values()].flatMap(([first, ...others]) =>
      others.map(({ name }) => `${name}: ${field}: is the same as that of ${first?.name}`),
    );
  return [
    ...repeated('id', (named) => outcomes.get(named)?.id),
    ...repeated('slug', ({ post }) => post.slug),
    ...posts.flatMap((named) => problemsOf(named, outcomes.get(named))),
    ...(force ? [] : await findRenamed(transfer, posts)),
  ];
}

/** The problems of files whose posts have other slugs than the files give now: they would become second posts. */
async function findRenamed(transfer: PostTransfer, posts: readonly NamedPost[]): Promise<string[]> {
  const byPath = Map.groupBy(await transfer.sources(), ({ path }) => path.normalize('NFC'));
  return posts.flatMap(({ name, post }) => {
    const sources = byPath.get(post.source.path.normalize('NFC')) ?? [];
    const made = sources.filter(
      ({ folder }) => folder === null || folder.normalize('NFC') === post.source.folder?.normalize('NFC'),
    );
    if (post.id !== undefined || made.some(({ slug }) => slug === post.slug)) return [];
    return made.slice(0, 1).map(({ id, slug }) => {
      const now = `made the post ${id} with the slug ${slug}, and has another slug now`;
      return `${name}: ${now}; id: ${id} keeps that post, --force makes a second one`;
    });
  });
}

function problemsOf({ name }: NamedPost, { kind, id, source }: Partial<Outcome> = {}): string[] {
  const file = source && printable(`${source.folder ?? '(a folder that 0.7 did not keep)'}/${source.path}`);
  const problems: Record<string, string> = {
    taken: `slug: belongs to the post ${id}`,
    stale: `the post ${id} was changed since this file was read; an export to another folder shows how, --force writes over it`,
    foreign: `the post ${id} has this id or slug and came from ${file ?? 'no file'}; another slug makes another post, --force writes over that one`,
  };
  const problem = problems[kind ?? ''];
  return problem === undefined ? [] : [`${name}: ${problem}`];
}

/** Stores the posts, several at once. After the first that fails it begins no other. */
export async function storePosts(transfer: PostTransfer, posts: readonly NamedPost[], force: boolean) {
  const counts = { created: 0, changed: 0, unchanged: 0 };
  const problems: string[] = [];
  await doSeveral(posts, async (named) => {
    if (problems.length > 0) return;
    try {
      const outcome = await transfer.store(named.post, force);
      problems.push(...problemsOf(named, outcome));
      if (outcome.kind in counts) counts[outcome.kind as keyof typeof counts]++;
    } catch (error) {
      const { severity, code } = postgresErrorOf(error) ?? {};
      if (severity === undefined && !isUnavailable(error)) throw error;
      // Without the database's message, which quotes the post.
      const answer =
        severity === 'ERROR' ? `does not take it (${code})` : 'did not answer; it may be stored or not';
      problems.push(`${named.name}: the database ${answer}`);
    }
  });
  return { counts, problems };
}
