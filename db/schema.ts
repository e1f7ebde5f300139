import type { AuditAction } from '../shared/contracts/accounts.js';
import type { PostStatus, ProviderId, Scope, UserRole } from '../shared/contracts/contract.js';
import { goodResults } from '../shared/contracts/ledger.js';
import {
  bigint,
  boolean,
  customType,
  date,
  index,
  integer,
  jsonb,
  pgTable,
  primaryKey,
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
  /** For people: what uses it. */
  name: text('name'),
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

/** Whether a chat ended with a failure; an index has this condition. */
export const isFailed = sql.raw(`result not in ('${goodResults.join("', '")}')`);

/** One row a chat of the ledger, and one of each request that was given the chat of another. */
export const requests = pgTable(
  'requests',
  {
    chat: text('chat').primaryKey(),
    userId: text('user_id').notNull(),
    userName: text('user_name'),
    tokenId: text('token_id'),
    api: text('api').notNull(),
    console: boolean('console').notNull(),
    session: text('session'),
    provider: text('provider').$type<ProviderId>().notNull(),
    model: text('model'),
    streamed: boolean('streamed').notNull(),
    stored: boolean('stored').notNull(),
    addedAt: time('added_at').notNull(),
    /** How it ended at its last attempt, the greatest by attempt and run; all null until a worker says so. */
    attempt: integer('attempt'),
    run: integer('run'),
    code: text('code'),
    workedUntil: time('worked_until'),
    answeredProvider: text('answered_provider').$type<ProviderId>(),
    answeredModel: text('answered_model'),
    errorStatus: integer('error_status'),
    errorType: text('error_type'),
    errorPlace: text('error_place'),
    /** All attempts, where there were several. */
    attempts: jsonb('attempts'),
    waitedMs: integer('waited_ms'),
    calledMs: integer('called_ms'),
    firstTokenMs: integer('first_token_ms'),
    /** The end that its caller was told, if no worker knows of one. */
    leftWith: text('left_with'),
    leftAt: time('left_at'),
    /** The chat whose reply the request was given. */
    joins: text('joins'),
    /** The end that its caller saw. */
    result: text('result').generatedAlwaysAs((): SQL => sql`coalesce(left_with, code)`),
    endedAt: time('ended_at').generatedAlwaysAs((): SQL => sql`coalesce(left_at, worked_until)`),
  },
  // Scanned backwards, the last that ended first.
  (request) => [
    index('requests_newest').on(request.endedAt, request.chat),
    index('requests_user_newest').on(request.userId, request.endedAt, request.chat),
    index('requests_failed_newest').on(request.endedAt, request.chat, request.userId).where(isFailed),
    index('requests_session_newest')
      .on(request.session, request.endedAt, request.chat)
      .where(sql`session is not null`),
  ],
);

const tokenCount = (name: string) => bigint(name, { mode: 'number' }).notNull();
const counts = () => ({
  input: tokenCount('input'),
  cached: tokenCount('cached'),
  written: tokenCount('written'),
  writtenFor1h: tokenCount('written_for_1h'),
  output: tokenCount('output'),
  thinking: tokenCount('thinking'),
});

/** The calls of the providers, and the runs that were lost: a lost run is call 0. */
export const calls = pgTable(
  'calls',
  {
    chat: text('chat').notNull(),
    attempt: integer('attempt').notNull(),
    addedAt: time('added_at').notNull(),
    run: integer('run').notNull(),
    call: integer('call').notNull(),
    kind: text('kind').notNull(),
    userId: text('user_id').notNull(),
    userName: text('user_name'),
    tokenId: text('token_id'),
    api: text('api').notNull(),
    session: text('session'),
    provider: text('provider').$type<ProviderId>().notNull(),
    model: text('model'),
    answeredModel: text('answered_model'),
    startedAt: time('started_at').notNull(),
    endedAt: time('ended_at').notNull(),
    /** `told`, `estimated` or `lost`. */
    known: text('known').notNull(),
    code: text('code'),
    status: integer('status'),
    type: text('type'),
    /** HTTP requests. */
    requests: integer('requests').notNull(),
    ...counts(),
    tier: text('tier'),
    requestId: text('request_id'),
    /** Null: unknown. */
    costNanos: bigint('cost_nanos', { mode: 'number' }),
    priceDated: date('price_dated'),
  },
  (call) => [
    // A store that forgets its last commits when it dies gives a run twice, with one number: so the time is in the key.
    primaryKey({ columns: [call.chat, call.attempt, call.addedAt, call.run, call.startedAt, call.call] }),
    index('calls_ended').using('brin', call.endedAt).with({ autosummarize: true }),
    index('calls_lost').on(call.chat).where(sql`known = 'lost'`),
    index('calls_request_id').on(call.requestId).where(sql`request_id is not null`),
  ],
);

/** The sums of the calls, which outlive them. */
export const usageDays = pgTable(
  'usage_days',
  {
    /** In UTC, when a call ended. */
    day: date('day').notNull(),
    userId: text('user_id').notNull(),
    /** Empty without an access token. */
    tokenId: text('token_id').notNull(),
    provider: text('provider').$type<ProviderId>().notNull(),
    /** Empty for calls without tokens or an answer: names that callers make up add no rows. */
    model: text('model').notNull(),
    api: text('api').notNull(),
    /** The latest. */
    userName: text('user_name'),
    calls: tokenCount('calls'),
    failed: tokenCount('failed'),
    estimated: tokenCount('estimated'),
    lost: tokenCount('lost'),
    unpriced: tokenCount('unpriced'),
    ...counts(),
    costNanos: bigint('cost_nanos', { mode: 'number' }).notNull(),
  },
  (day) => [
    primaryKey({ columns: [day.day, day.userId, day.tokenId, day.provider, day.model, day.api] }),
    index('usage_days_user').on(day.userId, day.day),
  ],
);
