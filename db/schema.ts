import type { AuditAction } from '../shared/contracts/accounts.js';
import type { PostStatus, Scope, UserRole } from '../shared/contracts/contract.js';
import {
  customType,
  index,
  integer,
  jsonb,
  pgTable,
  type SQL,
  sql,
  text,
  timestamp,
  uniqueIndex,
  uuid,
} from './database/drizzle.js';

/**
 * The tables. `npx drizzle-kit generate` writes the migration for a change of this file. Remove `"public".` from it,
 * which drizzle-kit puts into references: the tables are in the schema that search_path names.
 */

const bytes = customType<{ data: Buffer }>({ dataType: () => 'bytea' });
const searchVector = customType<{ data: string }>({ dataType: () => 'tsvector' });
/** To the millisecond, as in JavaScript and in responses, so that a cursor finds its exact place again. */
const time = (name: string) => timestamp(name, { withTimezone: true, precision: 3, mode: 'date' });

/** Blog posts. */
export const posts = pgTable(
  'posts',
  {
    id: uuid('id').primaryKey(),
    title: text('title'),
    content: text('content').notNull(),
    author: text('author').notNull(),
    tags: text('tags').array().notNull(),
    slug: text('slug').notNull(),
    status: text('status').$type<PostStatus>().notNull(),
    publishedAt: time('published_at'),
    createdAt: time('created_at').notNull().defaultNow(),
    updatedAt: time('updated_at').notNull().defaultNow(),
    version: integer('version').notNull().default(1),
    /** Lists are ordered by it, newest first, and by the id where it is the same. */
    sortedAt: time('sorted_at')
      .notNull()
      .generatedAlwaysAs((): SQL => sql`coalesce(published_at, created_at)`),
    search: searchVector('search')
      .notNull()
      .generatedAlwaysAs((): SQL => sql`post_search_vector(title, content)`),
    /** Owner of the token that created the post, and the key of the request; both null without Idempotency-Key. */
    idempotencyOwner: text('idempotency_owner'),
    idempotencyKey: text('idempotency_key'),
    /** SHA-256 of the request that created it. */
    idempotencyHash: bytes('idempotency_hash'),
  },
  (post) => [
    uniqueIndex('posts_slug').on(post.slug),
    uniqueIndex('posts_idempotency')
      .on(post.idempotencyOwner, post.idempotencyKey)
      .where(sql`idempotency_key is not null`),
    // Scanned backwards, newest first. Readers see only published posts, writers all of them. Drafts alone have no
    // index: building it would block writes during an upgrade. Without it the list takes 0.14 s when one post in
    // 100,000 is a draft.
    index('posts_published_newest').on(post.sortedAt, post.id).where(sql`status = 'published'`),
    index('posts_newest').on(post.sortedAt, post.id),
    index('posts_author_newest').on(post.author, post.sortedAt, post.id),
    // With PostgreSQL's list of pending entries: without it 100,000 posts took 2,400 new ones a second instead of
    // 4,200, and were searched no faster (p99 10 ms either way); in return, one post in some thousands takes 0.3 s.
    index('posts_tags').using('gin', post.tags),
    index('posts_search').using('gin', post.search),
  ],
);

/** The file that made a post: no other file changes it, and an export writes to its path. */
export const postSources = pgTable('post_sources', {
  postId: uuid('post_id')
    .primaryKey()
    .references(() => posts.id, { onDelete: 'cascade' }),
  /** The version of the post in the file. */
  version: integer('version').notNull(),
  /** Name of the imported folder; null for posts whose import did not keep it. */
  folder: text('folder'),
  /** Relative to the imported folder, with `/`. */
  path: text('path').notNull(),
  /** The file up to its content, the delimiters included; no export reads it. */
  head: text('head').notNull(),
});

/** Slugs that published posts had, until another published post has them. A trigger writes them, also for imports. */
export const oldSlugs = pgTable(
  'old_slugs',
  {
    slug: text('slug').primaryKey(),
    postId: uuid('post_id')
      .notNull()
      .references(() => posts.id, { onDelete: 'cascade' }),
  },
  (old) => [index('old_slugs_post').on(old.postId)],
);

/** A name that is used again after a removal gets another id. The user that the environment names needs no row. */
export const users = pgTable('users', {
  name: text('name').primaryKey(),
  /** SHA-256 of a generated secret, too long to be guessed from this; empty for a user who has only tokens. */
  secretHash: bytes('secret_hash').notNull(),
  createdAt: time('created_at').notNull().defaultNow(),
  id: uuid('id').notNull().unique('users_id').defaultRandom(),
  role: text('role').$type<UserRole>().notNull().default('user'),
  /** Null: the user may do what the role allows. The name counts, also where the environment has this user. */
  suspendedAt: time('suspended_at'),
});

/** Access tokens; the one that the environment names is not among them. */
export const tokens = pgTable('tokens', {
  id: uuid('id').primaryKey(),
  /** SHA-256 of the token. */
  secretHash: bytes('secret_hash').notNull().unique('tokens_secret_hash'),
  /** Name of its user when it was made. */
  owner: text('owner').notNull(),
  /** A trigger sets it by the owner's name, and creates a missing user. Null for a removed one: the token is void. */
  userId: uuid('user_id').references(() => users.id, { onDelete: 'set null' }),
  scopes: text('scopes').array().$type<Scope[]>().notNull(),
  createdAt: time('created_at').notNull().defaultNow(),
  /** Null: never. */
  expiresAt: time('expires_at'),
  lastUsedAt: time('last_used_at'),
  revokedAt: time('revoked_at'),
});

/**
 * Sessions of the console. The statements that remove a user or reset a secret end them, and no foreign key does: the
 * environment's user has no row.
 */
export const sessions = pgTable(
  'session',
  {
    /** SHA-256, so that a backup does not let its reader sign in. */
    digest: bytes('digest').primaryKey(),
    userId: uuid('user_id').notNull(),
    userName: text('user_name').notNull(),
    createdAt: time('created_at').notNull().defaultNow(),
    expiresAt: time('expires_at').notNull(),
    /** The `secret_hash` that it was opened with: another secret ends it. Null with that of the environment. */
    secretHash: bytes('secret_hash'),
  },
  (session) => [index('session_expiry').on(session.expiresAt)],
);

/** The operators' settings for the pools of a provider, above the environment; `audit` has the earlier ones. */
export const poolSettings = pgTable('pool_setting', {
  provider: text('provider').primaryKey(),
  /** Grows with each change. */
  version: integer('version').notNull(),
  /** A `PoolOverrides` of `shared/protocol/settings.ts`. */
  overrides: jsonb('overrides').notNull(),
  changedAt: time('changed_at').notNull().defaultNow(),
  /** The operator, by the same name as in `audit.actor`. */
  changedBy: text('changed_by').notNull(),
});

/** The operators' changes, each written by the statement that makes the change, and never updated. */
export const audit = pgTable(
  'audit',
  {
    id: uuid('id').primaryKey().defaultRandom(),
    /** To the microsecond: the entries are ordered by it. */
    at: timestamp('at', { withTimezone: true, mode: 'date' }).notNull().defaultNow(),
    /** Account of the operating system, and its machine. */
    actor: text('actor').notNull(),
    action: text('action').$type<AuditAction>().notNull(),
    /** The id of the user or the token, or one that is made from the provider's name. */
    targetId: uuid('target_id').notNull(),
    /** The user's name, that of the token's owner, or the provider. */
    targetName: text('target_name').notNull(),
    /** All settings before and after a change. For a new user or token, `after` has what it may do. */
    before: jsonb('before'),
    after: jsonb('after'),
  },
  // Scanned backwards, newest first.
  (entry) => [index('audit_newest').on(entry.at, entry.id)],
);
