import { postgresErrorOf } from '../../db/database/errors.js';
import type { Imported, ImportedPost, PostImport } from '../../db/posts/post-import.js';
import { Failure } from '../../shared/failures.js';
import { doSeveral, isAway } from '../database.js';
import { describeStale, type NamedPost } from './import-identities.js';

/** What came of every post. */
export interface ImportResult {
  counts: Record<Imported, number>;
  /** Posts that the database did not take, with the reason; the others were gone on with. */
  refused: string[];
  /** Posts for which the database gave no answer: stored or not. */
  uncertain: string[];
  /** How many were not tried any more, because the database was away or in trouble too often. */
  untried: number;
}

interface ImportRun {
  transfer: PostImport;
  posts: readonly NamedPost[];
  /** Whether to write over posts that were changed since their files were read. */
  force?: boolean;
  /** Whether the database can be worked with. */
  isThere: () => Promise<boolean>;
  onDone: () => void;
}

/** So many posts that meet trouble in a database that is there are trouble for every post. */
const maxTroubles = 20;

/** Stores the posts, several at once, until all are done or the database is away. */
export async function storePosts({
  transfer,
  posts,
  force = false,
  isThere,
  onDone,
}: ImportRun): Promise<ImportResult> {
  const result: ImportResult = {
    counts: { created: 0, changed: 0, unchanged: 0 },
    refused: [],
    uncertain: [],
    untried: posts.length,
  };
  let troubles = 0;
  let stopped = false;
  await doSeveral(posts, async ({ name, post }) => {
    if (stopped) return;
    result.untried--;
    try {
      result.counts[await transfer.store(post, { force })]++;
    } catch (error) {
      if (isAway(error) && !wasAnswered(error)) result.uncertain.push(name);
      else result.refused.push(`${name}: ${reasonOf(error, post)}`);
      if (isAway(error)) stopped = ++troubles === maxTroubles || !(await isThere()) || stopped;
    }
    onDone();
  });
  return result;
}

/** An error that ends the statement alone is PostgreSQL's word that nothing of it was done. */
const wasAnswered = (error: unknown): boolean => postgresErrorOf(error)?.severity === 'ERROR';

/** Messages of the database hold what was to be stored. */
function reasonOf(error: unknown, post: ImportedPost): string {
  if (error instanceof Failure && error.code === 'slug_taken') return 'slug: belongs to another post';
  if (error instanceof Failure && error.code === 'precondition_failed') return describeStale(post.id);
  return `the database does not take it (${postgresErrorOf(error)?.code})`;
}
