import slugify from '@sindresorhus/slugify';
import { v7 as uuidv7 } from 'uuid';
import type { Post } from '../../shared/contracts/contract.js';
import { Failure } from '../../shared/failures.js';
import { isActiveToken } from '../access/tokens.js';
import type { UserIdentity } from '../access/users.js';
import type { Statements } from '../database/client.js';
import type { Drizzle } from '../database/connections.js';
import { alias, and, type Column, eq, exists, type Placeholder, type SQL, sql } from '../database/drizzle.js';
import { posts } from '../schema.js';
import { postColumns, toPost } from './post-rows.js';

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

/** The slug of a post, and the one it gets when another post has that. */
export interface Slug {
  wanted: string;
  /** The same as `wanted` where there is no alternative. */
  fallback: string;
}

/**
 * The slug that a post gets from its title: letters, digits and hyphens, at most 89 characters, 199 bytes of UTF-8.
 * Letters without a usual spelling in ASCII (Chinese, Hindi, Hebrew, …) stay, as RFC 3987 has them in addresses.
 */
export function slugOfTitle(title: string | null, id: string): Slug {
  const suffix = id.slice(-suffixLength);
  const words = shorten(wordsOf(title ?? ''));
  if (words === '') return slugAsGiven(`post-${suffix}`);
  return { wanted: words, fallback: `${words}-${suffix}` };
}

/** A slug without an alternative. */
export const slugAsGiven = (slug: string): Slug => ({ wanted: slug, fallback: slug });

/** The SQL for a slug that is free at the time of its statement; only the unique index knows whether it stays so. */
export function freeSlug(db: Drizzle, { wanted, fallback }: Record<keyof Slug, string | Placeholder>): SQL {
  const other = alias(posts, 'other');
  const taken = exists(db.select({ one: sql`1` }).from(other).where(eq(other.slug, wanted)));
  return sql`case when ${taken} then ${fallback} else ${wanted} end`;
}

/** The last hexadecimal digits of a UUIDv7 are random. */
const suffixLength = 8;
const maxCharacters = 80;
/** With the suffix, an id and an ending it is a file's name, of 255 bytes at most. */
const maxBytes = 190;

/** Scripts that slugify writes in ASCII, and what belongs to no script. */
const known = String.raw`[\p{scx=Latn}\p{scx=Grek}\p{scx=Cyrl}\p{scx=Arab}\p{scx=Armn}\p{scx=Geor}\p{scx=Thaa}\p{scx=Zyyy}]`;
/** A letter or digit of any other script, and the ones behind it with their marks and joiners. */
const ownLetters = new RegExp(
  String.raw`([[\p{L}\p{N}]--${known}](?:[\u200c\u200d]*[[\p{L}\p{M}\p{N}]--${known}])*)`,
  'v',
);

/** Own letters are at the odd places, because the pattern has a group. */
function wordsOf(title: string): string {
  const own = (text: string) => text.replace(/[\u200c\u200d]/g, '').normalize('NFC');
  const parts = title.normalize('NFC').split(ownLetters);
  const words = parts.map((part, n) => (n % 2 === 1 ? own(part) : slugify(part, { decamelize: false })));
  const slug = words.filter((word) => word !== '').join('-');
  return slug.toLowerCase();
}

/** Cut behind a whole word, unless the first one is too long by itself, and never between a letter and its marks. */
function shorten(slug: string): string {
  let end = 0;
  for (const [letter] of slug.matchAll(/\P{M}\p{M}*/gu)) {
    const text = slug.slice(0, end + letter.length);
    if (text.length > maxCharacters || Buffer.byteLength(text) > maxBytes) {
      const word = slug.lastIndexOf('-', end);
      return slug.slice(0, word > 0 ? word : end);
    }
    end += letter.length;
  }
  return slug;
}
