import { v7 as uuidv7 } from 'uuid';
import type { Post } from '../../shared/contract.js';
import { Failure } from '../../shared/failures.js';
import type { Database, Drizzle, Statements } from '../database/client.js';
import { and, eq, sql } from '../database/drizzle.js';
import { posts } from '../schema.js';
import { oncePerConnection, postColumns, toPost } from './post-rows.js';
import type { PostFields, PostRequest, PostStore } from './post-store.js';
import { freeSlug, type Slug, slugAsGiven, slugOfTitle } from './slug.js';

/** Each attempt has another fallback slug, so that the second is nearly always the last. */
const maxAttempts = 3;

/**
 * Creates posts:
 * 1. The post is inserted, unless its slug or its request is known already.
 * 2. If the request is known, its post is returned. This is checked first, because a repeated request with a slug finds that slug
 *    taken, too: by its own post. A key of a previous user of the same name is removed from the post, and the insertion repeated.
 * 3. If the slug was made from the title, another post has just taken it: the insertion is repeated with another slug.
 */
export function createPostCreation(database: Database): PostStore['create'] {
  const insertion = oncePerConnection(prepareInsertion);

  return async (fields, request) => {
    const statements = database.withSharedDeadline();
    for (let attempt = 1; attempt <= maxAttempts; attempt++) {
      const values = toValues(fields, request, attempt);
      const [row] = await statements.run((db) => insertion(db).execute(values));
      if (row !== undefined) return { post: toPost(row), replayed: false };
      const first = request && (await findFirst(statements, request));
      if (first?.isOwn) return { post: first.post, replayed: true };
      if (first === undefined && fields.slug !== undefined) break;
    }
    throw new Failure('slug_taken');
  };
}

function toValues(fields: PostFields, request: PostRequest | undefined, attempt: number) {
  const id = uuidv7();
  const { wanted, fallback } = slugFor(fields, id);
  return {
    ...fields,
    id,
    slug: attempt === 1 ? wanted : fallback,
    fallbackSlug: fallback,
    owner: request?.user.name ?? null,
    key: request?.key ?? null,
    hash: request?.hash ?? null,
  };
}

const slugFor = ({ slug, title }: PostFields, id: string): Slug =>
  slug === undefined ? slugOfTitle(title, id) : slugAsGiven(slug);

function prepareInsertion(db: Drizzle) {
  const given = sql.placeholder;
  return db
    .insert(posts)
    .values({
      id: given('id'),
      title: given('title'),
      content: given('content'),
      author: given('author'),
      tags: given('tags'),
      slug: freeSlug(db, { wanted: given('slug'), fallback: given('fallbackSlug') }),
      status: given('status'),
      publishedAt: sql`case when ${given('status')} = 'published' then now() end`,
      idempotencyOwner: given('owner'),
      idempotencyKey: given('key'),
      idempotencyHash: given('hash'),
    })
    .onConflictDoNothing()
    .returning(postColumns)
    .prepare('new-post');
}

/**
 * The post of the idempotency key. The key is stored with the user's name, as in the previous release; a post older than the user
 * belongs to a previous user of that name, and loses the key.
 */
async function findFirst(
  statements: Statements,
  { user, key, hash }: PostRequest,
): Promise<{ post: Post; isOwn: boolean } | undefined> {
  const sameKey = and(eq(posts.idempotencyOwner, user.name), eq(posts.idempotencyKey, key));
  const [row] = await statements.run((db) =>
    db
      .select({ ...postColumns, hash: posts.idempotencyHash })
      .from(posts)
      .where(sameKey),
  );
  if (row === undefined) return undefined;
  const post = toPost(row);
  const isOwn = row.createdAt >= user.createdAt;
  if (!isOwn) await forgetKey(statements, post);
  else if (row.hash === null || !hash.equals(row.hash)) throw new Failure('idempotency_key_reused');
  return { post, isOwn };
}

async function forgetKey(statements: Statements, { id }: Post): Promise<void> {
  const nothing = { idempotencyOwner: null, idempotencyKey: null, idempotencyHash: null };
  await statements.run((db) => db.update(posts).set(nothing).where(eq(posts.id, id)));
}
