import { v7 as uuidv7 } from 'uuid';
import type { Post } from '../../shared/contracts/contract.js';
import { Failure } from '../../shared/failures.js';
import { isActiveToken } from '../access/tokens.js';
import type { UserIdentity } from '../access/users.js';
import type { Statements } from '../database/client.js';
import type { Drizzle } from '../database/connections.js';
import { and, type Column, eq, sql } from '../database/drizzle.js';
import { posts } from '../schema.js';
import { postColumns, toPost } from './post-rows.js';
import { freeSlug, type Slug, slugAsGiven, slugOfTitle } from './slug.js';

/** The fields of a post that a caller sets. */
export interface PostFields extends Pick<Post, 'content' | 'title' | 'author' | 'tags' | 'status'> {
  /** Undefined: made from the title. */
  slug: string | undefined;
}

/** Identifies a request that creates a post, to recognise it when it is repeated. */
export interface PostRequest {
  /** The owner of its access token: each user has a namespace of keys. */
  user: UserIdentity;
  key: string;
  /** SHA-256 of everything in the request that determines the post. */
  hash: Buffer;
}

/** The parameters of `insertPost` for the first or a later attempt to create a post. */
export function toValues(fields: PostFields, request: PostRequest | undefined, attempt: number) {
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

/** Inserts a post, unless its slug or its idempotency key is taken, or the token is not active. */
export function insertPost(db: Drizzle) {
  const { placeholder } = sql;
  const given = (name: keyof ReturnType<typeof toValues>, column: Column) =>
    sql.param(placeholder(name), column);
  const slug = freeSlug(db, { wanted: placeholder('slug'), fallback: placeholder('fallbackSlug') });
  const publishedAt = sql`case when ${placeholder('status')} = 'published' then now() end`;
  const token = placeholder('token');
  // Drizzle inserts all columns that are not generated, in the order of the table.
  const values = sql`select ${given('id', posts.id)}, ${given('title', posts.title)},
    ${given('content', posts.content)}, ${given('author', posts.author)}, ${given('tags', posts.tags)}, ${slug},
    ${given('status', posts.status)}, ${publishedAt}, now(), now(), 1, ${given('owner', posts.idempotencyOwner)},
    ${given('key', posts.idempotencyKey)}, ${given('hash', posts.idempotencyHash)}
    where ${token}::uuid is null or ${isActiveToken(token)}`;
  return db.insert(posts).select(values).onConflictDoNothing().returning(postColumns).prepare('new-post');
}

/** The post of the idempotency key; one older than the user is of a previous user of that name, and loses the key. */
export async function findFirst(
  statements: Statements,
  { user, key, hash }: PostRequest,
): Promise<{ post: Post; isOwn: boolean } | undefined> {
  const sameKey = and(eq(posts.idempotencyOwner, user.name), eq(posts.idempotencyKey, key));
  const columns = { post: postColumns, hash: posts.idempotencyHash };
  const [row] = await statements.run((db) => db.select(columns).from(posts).where(sameKey));
  if (row === undefined) return undefined;
  const post = toPost(row.post);
  const isOwn = new Date(post.createdAt) >= user.createdAt;
  if (!isOwn) await forgetKey(statements, post);
  else if (row.hash === null || !hash.equals(row.hash)) throw new Failure('idempotency_key_reused');
  return { post, isOwn };
}

async function forgetKey(statements: Statements, { id }: Post): Promise<void> {
  const nothing = { idempotencyOwner: null, idempotencyKey: null, idempotencyHash: null };
  await statements.run((db) => db.update(posts).set(nothing).where(eq(posts.id, id)));
}
