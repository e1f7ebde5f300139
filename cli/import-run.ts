import type { Imported, PostTransfer } from '../db/post-transfer.js';
import { Failure } from '../shared/failures.js';
import { isAway, statementsAtOnce } from './database.js';
import type { NamedPost } from './import-slugs.js';

/** What came of every post. */
export interface ImportResult {
  counts: Record<Imported, number>;
  /** Posts that the database did not take, with the reason; the others were gone on with. */
  refused: string[];
  /** Posts that were on their way when the database went away: stored or not. */
  uncertain: string[];
  /** How many were not tried any more after that. */
  untried: number;
}

interface ImportRun {
  transfer: PostTransfer;
  posts: readonly NamedPost[];
  onDone: () => void;
}

/** Posts whose slug is that of another post in the database, in words for people. */
export async function findHeldSlugs(transfer: PostTransfer, posts: readonly NamedPost[]): Promise<string[]> {
  const holders = await transfer.holders(posts.map(({ post }) => post.slug));
  const ids = new Set(posts.map(({ post }) => post.id));
  return posts.flatMap(({ name, post }) => {
    const holder = holders.get(post.slug);
    if (holder === undefined) return [];
    const own = post.id === undefined ? !ids.has(holder) : holder === post.id;
    return own ? [] : [`${name}: slug: belongs to the post ${holder}`];
  });
}

/** Stores the posts, several at once, until all are done or the database is away. */
export async function storePosts({ transfer, posts, onDone }: ImportRun): Promise<ImportResult> {
  const result: ImportResult = {
    counts: { created: 0, changed: 0, unchanged: 0 },
    refused: [],
    uncertain: [],
    untried: posts.length,
  };
  const storeOne = async ({ name, post }: NamedPost) => {
    result.untried--;
    try {
      result.counts[await transfer.store(post)]++;
    } catch (error) {
      if (isAway(error)) result.uncertain.push(name);
      else result.refused.push(`${name}: ${reasonOf(error)}`);
    }
    onDone();
  };
  const waiting = posts.values();
  const storeWaiting = async () => {
    for (const post of waiting) {
      await storeOne(post);
      if (result.uncertain.length > 0) return;
    }
  };
  await Promise.all(Array.from({ length: statementsAtOnce }, storeWaiting));
  return result;
}

/** Messages of the database hold what was to be stored. */
const reasonOf = (error: unknown): string =>
  error instanceof Failure && error.code === 'slug_taken'
    ? 'slug: belongs to another post'
    : 'the database does not take it';
