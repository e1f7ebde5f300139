import type { Post } from '../../shared/contract.js';
import { Failure } from '../../shared/failures.js';
import { type Database, isUniqueViolation, type Statements } from '../database/client.js';
import { and, eq, or, type PgUpdateSetSource, type SQL, sql } from '../database/drizzle.js';
import { posts } from '../schema.js';
import type { PostReader } from './post-reader.js';
import { postColumns, toPost, versionColumns } from './post-rows.js';
import type { Change, PostChanges, PostStore, PostVersionMark, Unchanged } from './post-store.js';
import { freeSlug, type Slug, slugAsGiven, slugOfTitle } from './slug.js';

interface PostChangesDeps {
  database: Database;
  read: PostReader;
}

interface ChangeDeps {
  statements: Statements;
  read: PostReader;
}

type Expected = readonly PostVersionMark[] | undefined;

interface Update {
  id: string;
  values: Omit<PostChanges, 'slug'>;
  /** Undefined: stays. */
  slug: Slug | undefined;
  expected: Expected;
}

/**
 * Changes and removes posts. The expected versions are a condition of the statement that writes, so only one of two writes that
 * expect the same version happens; a write that did not happen is followed by a read of the reason.
 */
export function createPostChanges({
  database,
  read,
}: PostChangesDeps): Pick<PostStore, 'replace' | 'patch' | 'remove'> {
  return {
    replace: (id, { slug, ...values }, expected) =>
      update(database.withSharedDeadline(), {
        id,
        values,
        slug: slug === undefined ? slugOfTitle(values.title, id) : slugAsGiven(slug),
        expected,
      }),
    patch: (id, changes, expected) =>
      patch({ statements: database.withSharedDeadline(), read }, { id, changes, expected }),
    remove: async (id, expected) => {
      const statements = database.withSharedDeadline();
      const [row] = await statements.run((db) =>
        db.delete(posts).where(asExpected(id, expected)).returning({ id: posts.id }),
      );
      return row === undefined ? whyUnchanged(statements, id, expected) : { kind: 'removed' };
    },
  };
}

async function patch(
  deps: ChangeDeps,
  { id, changes, expected }: { id: string; changes: PostChanges; expected: Expected },
): Promise<Change> {
  const { slug, ...values } = changes;
  if (Object.values(changes).every((value) => value === undefined)) return keep(deps, { id, expected });
  if (slug === undefined) return update(deps.statements, { id, values, slug, expected });
  if (slug !== null) return update(deps.statements, { id, values, slug: slugAsGiven(slug), expected });
  if (values.title === undefined) return remakeSlug(deps, { id, values, expected });
  return update(deps.statements, { id, values, slug: slugOfTitle(values.title, id), expected });
}

async function keep(
  { statements, read }: ChangeDeps,
  { id, expected }: Pick<Update, 'id' | 'expected'>,
): Promise<Change> {
  const post = await read(statements, id, { drafts: true });
  if (post === undefined) return { kind: 'missing' };
  if (!isExpected(post, expected)) return { kind: 'stale', current: toVersion(post) };
  return { kind: 'changed', post };
}

/** Reads the title first, and again when the post changes in between: the slug would be that of an old title. */
async function remakeSlug(deps: ChangeDeps, wanted: Omit<Update, 'slug'>): Promise<Change> {
  for (;;) {
    const kept = await keep(deps, wanted);
    if (kept.kind !== 'changed') return kept;
    const slug = slugOfTitle(kept.post.title, wanted.id);
    const change = await update(deps.statements, { ...wanted, slug, expected: [kept.post] });
    if (change.kind !== 'stale') return change;
  }
}

/** When another write takes the slug at the same moment, the fallback is used. */
async function update(statements: Statements, wanted: Update): Promise<Change> {
  try {
    return await tryUpdate(statements, wanted);
  } catch (error) {
    const { slug } = wanted;
    if (slug === undefined || !isUniqueViolation(error, 'posts_slug')) throw error;
    // Without the cause, whose message quotes the post.
    if (slug.wanted === slug.fallback) throw new Failure('slug_taken');
    return update(statements, { ...wanted, slug: slugAsGiven(slug.fallback) });
  }
}

async function tryUpdate(statements: Statements, { id, values, slug, expected }: Update): Promise<Change> {
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
    return db.update(posts).set(changes).where(asExpected(id, expected)).returning(postColumns);
  });
  return row === undefined ? whyUnchanged(statements, id, expected) : { kind: 'changed', post: toPost(row) };
}

function asExpected(id: string, expected: Expected): SQL | undefined {
  const hasId = eq(posts.id, id);
  if (expected === undefined) return hasId;
  const marks = expected.map(({ version, updatedAt }) =>
    and(eq(posts.version, version), eq(posts.updatedAt, new Date(updatedAt))),
  );
  return and(hasId, or(...marks) ?? sql`false`);
}

async function whyUnchanged(statements: Statements, id: string, expected: Expected): Promise<Unchanged> {
  if (expected === undefined) return { kind: 'missing' };
  const [row] = await statements.run((db) => db.select(versionColumns).from(posts).where(eq(posts.id, id)));
  if (row === undefined) return { kind: 'missing' };
  return { kind: 'stale', current: { ...row, updatedAt: row.updatedAt.toISOString() } };
}

const isExpected = (post: Post, expected: Expected): boolean =>
  expected?.some((mark) => mark.version === post.version && mark.updatedAt === post.updatedAt) ?? true;

const toVersion = ({ id, version, updatedAt }: Post) => ({ id, version, updatedAt });
