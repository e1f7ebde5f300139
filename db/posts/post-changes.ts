import type { Post } from '../../shared/contracts/contract.js';
import { Failure } from '../../shared/failures.js';
import { isActiveToken, requireActive, type WriteToken } from '../access/tokens.js';
import type { Statements } from '../database/client.js';
import { and, eq, or, type PgUpdateSetSource, type SQL, sql } from '../database/drizzle.js';
import { isUniqueViolation } from '../database/errors.js';
import { posts } from '../schema.js';
import { freeSlug, type PostFields, type Slug, slugAsGiven, slugOfTitle } from './post-creation.js';
import { type PostRevision, type PostVersion, postColumns, toIsoTime, toPost } from './post-rows.js';

/** The fields to change; absent ones stay. */
export interface PostChanges extends Partial<Omit<PostFields, 'slug'>> {
  /** Null: made from the title again. */
  slug?: string | null;
}

/** The conditions of a write. */
export interface WriteCondition {
  /** The versions of the post that the caller expects; undefined: any. */
  expected?: readonly PostRevision[] | undefined;
  /** Undefined for callers without an access token in the database. */
  token?: WriteToken | undefined;
}

/** Why a write with an expected version did not happen. */
export type Unchanged = { kind: 'missing' } | { kind: 'stale'; current: PostVersion };

export type Change = { kind: 'changed'; post: Post } | Unchanged;

export type Removal = { kind: 'removed' } | Unchanged;

interface Update extends WriteCondition {
  id: string;
  values: Omit<PostChanges, 'slug'>;
  /** Undefined: stays. */
  slug: Slug | undefined;
}

/** Updates a post. When another write takes the slug at the same moment, the fallback is used. */
export async function updatePost(statements: Statements, wanted: Update): Promise<Change> {
  try {
    return await tryUpdate(statements, wanted);
  } catch (error) {
    const { slug } = wanted;
    if (slug === undefined || !isUniqueViolation(error, 'posts_slug')) throw error;
    // Without the cause, whose message quotes the post.
    if (slug.wanted === slug.fallback) throw new Failure('slug_taken');
    return updatePost(statements, { ...wanted, slug: slugAsGiven(slug.fallback) });
  }
}

async function tryUpdate(statements: Statements, update: Update): Promise<Change> {
  const { id, values, slug } = update;
  const [row] = await statements.run((db) => {
    const changes: PgUpdateSetSource<typeof posts> = {
      ...values,
      version: sql`${posts.version} + 1`,
      updatedAt: sql`now()`,
    };
    if (values.status === 'published') changes.publishedAt = sql`coalesce(${posts.publishedAt}, now())`;
    if (slug !== undefined) {
      const held = sql`${posts.slug} in (${slug.wanted}, ${slug.fallback})`;
      changes.slug = sql`case when ${held} then ${posts.slug} else ${freeSlug(db, slug)} end`;
    }
    return db.update(posts).set(changes).where(isAllowed(id, update)).returning(postColumns);
  });
  return row === undefined ? whyUnchanged(statements, id, update) : { kind: 'changed', post: toPost(row) };
}

/** The condition of a write: the post exists and has one of the expected versions, and the token is active. */
export function isAllowed(id: string, { expected, token }: WriteCondition): SQL | undefined {
  const hasId = and(eq(posts.id, id), token && isActiveToken(token.id));
  if (expected === undefined) return hasId;
  const revisions = expected.map(({ version, updatedAt }) =>
    and(eq(posts.version, version), eq(posts.updatedAt, new Date(updatedAt))),
  );
  return and(hasId, or(...revisions) ?? sql`false`);
}

/** Finds out why a write with that condition changed nothing. Throws what the token's `refuse` throws. */
export async function whyUnchanged(
  statements: Statements,
  id: string,
  { expected, token }: WriteCondition,
): Promise<Unchanged> {
  await requireActive(statements, token);
  if (expected === undefined) return { kind: 'missing' };
  const versionColumns = { id: posts.id, version: posts.version, updatedAt: postColumns.updatedAt };
  const [row] = await statements.run((db) => db.select(versionColumns).from(posts).where(eq(posts.id, id)));
  if (row === undefined) return { kind: 'missing' };
  return { kind: 'stale', current: { ...row, updatedAt: toIsoTime(row.updatedAt) } };
}

/** Makes the slug from the title again; repeated when the post changes in between, since its title may have, too. */
export async function remakeSlug(statements: Statements, update: Omit<Update, 'slug'>): Promise<Change> {
  for (;;) {
    const found = await findExpected(statements, update);
    if (found.kind !== 'changed') return found;
    const slug = slugOfTitle(found.post.title, update.id);
    const change = await updatePost(statements, { ...update, slug, expected: [found.post] });
    if (change.kind !== 'stale') return change;
  }
}

/** The outcome of a change that changes nothing: the post as it is. */
export async function findExpected(
  statements: Statements,
  { id, expected }: Pick<Update, 'id' | 'expected'>,
): Promise<Change> {
  const [row] = await statements.run((db) => db.select(postColumns).from(posts).where(eq(posts.id, id)));
  if (row === undefined) return { kind: 'missing' };
  const post = toPost(row);
  return isExpected(post, expected)
    ? { kind: 'changed', post }
    : { kind: 'stale', current: { id, version: post.version, updatedAt: post.updatedAt } };
}

const isExpected = (post: Post, expected: WriteCondition['expected']): boolean =>
  expected?.some(({ version, updatedAt }) => version === post.version && updatedAt === post.updatedAt) ??
  true;
