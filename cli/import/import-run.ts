import { postgresErrorOf } from '../../db/database/errors.js';
import type { Imported, ImportedPost, PostImport } from '../../db/posts/post-import.js';
import { Failure } from '../../shared/failures.js';
import { doSeveral, isUnavailable } from '../database.js';
import { describeStale, type NamedPost } from './import-identities.js';

/** The result of every post. */
export interface ImportResult {
  counts: Record<Imported, number>;
  /** Posts that the database rejected, with the reason; the import continued with the others. */
  refused: string[];
  /** Posts that may or may not have been stored, because the database did not answer. */
  uncertain: string[];
  /** The number of posts that were not tried, because the database was unavailable or failed too often. */
  untried: number;
}

interface ImportRun {
  transfer: PostImport;
  posts: readonly NamedPost[];
  force?: boolean;
  isAvailable: () => Promise<boolean>;
}

/** After this many failures of an available database, every other post would fail as well. */
const maxFailures = 20;

/** Stores the posts, several at once, until all are done or the database is unavailable. */
export async function storePosts(run: ImportRun): Promise<ImportResult> {
  const { transfer, posts, force = false, isAvailable } = run;
  const result: ImportResult = {
    counts: { created: 0, changed: 0, unchanged: 0 },
    refused: [],
    uncertain: [],
    untried: posts.length,
  };
  let failures = 0;
  let stopped = false;
  await doSeveral(posts, async ({ name, post }) => {
    if (stopped) return;
    result.untried--;
    try {
      result.counts[await transfer.store(post, { force })]++;
    } catch (error) {
      if (isUnavailable(error) && !wasAnswered(error)) result.uncertain.push(name);
      else result.refused.push(`${name}: ${reasonOf(error, post)}`);
      if (isUnavailable(error)) stopped = ++failures === maxFailures || !(await isAvailable()) || stopped;
    }
  });
  return result;
}

/** After an error that ends only the statement, PostgreSQL has rolled all of it back. */
const wasAnswered = (error: unknown): boolean => postgresErrorOf(error)?.severity === 'ERROR';

/** Leaves out the database's message, which quotes the post. */
function reasonOf(error: unknown, post: ImportedPost): string {
  if (error instanceof Failure && error.code === 'slug_taken') return 'slug: belongs to another post';
  if (error instanceof Failure && error.code === 'precondition_failed') return describeStale(post.id);
  return `the database does not take it (${postgresErrorOf(error)?.code})`;
}
