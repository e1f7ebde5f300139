import type { Post } from '../../shared/contracts/contract.js';
import { Failure } from '../../shared/failures.js';
import { requireActive, type WriteToken } from '../access/tokens.js';
import type { Database, Statements } from '../database/client.js';
import type { Drizzle } from '../database/connections.js';
import { eq, sql } from '../database/drizzle.js';
import { oldSlugs, posts } from '../schema.js';
import {
  type Change,
  findExpected,
  isAllowed,
  type PostChanges,
  type Removal,
  remakeSlug,
  updatePost,
  type WriteCondition,
  whyUnchanged,
} from './post-changes.js';
import {
  findFirst,
  insertPost,
  type PostFields,
  type PostRequest,
  slugAsGiven,
  slugOfTitle,
  toValues,
} from './post-creation.js';
import {
  endsOf,
  findsNothing,
  listReader,
  type Neighbours,
  type PageEnds,
  type Position,
  type PostFilter,
  type PostSummary,
  selectNeighbours,
  selectNewest,
  selectPage,
  selectSummaries,
  toSummary,
} from './post-lists.js';
import { buildOnce, type PostVersion, postColumns, toIsoTime, toPost } from './post-rows.js';

/** A page of what people read, and what its list has beyond it. */
export interface SummaryPage {
  posts: PostSummary[];
  /** Undefined where there are no posts. */
  ends: PageEnds | undefined;
  beyond: Neighbours;
}

/** Each attempt has another fallback slug, so that the second is nearly always the last. */
const maxCreationAttempts = 3;

/**
 * The posts in PostgreSQL; ids are well-formed UUIDs, texts well-formed Unicode without NUL. A write is one statement,
 * on the conditions that the post has an expected version and that the caller's token is active. One that did not
 * happen is followed by a read of the reason. Everything may throw `Failure('database_unavailable')`, and what sets a
 * slug `Failure('slug_taken')`.
 */
export class PostStore {
  readonly #database: Database;
  readonly #insert = buildOnce(insertPost);
  readonly #selectById = buildOnce(selectById);
  readonly #selectBySlug = [buildOnce(selectBySlug), buildOnce(selectByOldSlug)];
  readonly #selectNewest = buildOnce(selectNewest);
  readonly #readPage = listReader(selectPage);
  readonly #readSummaries = listReader(selectSummaries);
  readonly #readNeighbours = listReader(selectNeighbours);

  constructor(database: Database) {
    this.#database = database;
  }

  /** Undefined for a missing post, and for a draft unless `drafts` is set. */
  async get(id: string, { drafts }: { drafts: boolean }): Promise<Post | undefined> {
    // The status is compared here: one plan serves both, and finds the row by its id.
    const [row] = await this.#database.run((db) => this.#selectById(db).execute({ id }));
    return row && isVisible(row, drafts) ? toPost(row) : undefined;
  }

  /** The post that has the slug, else the one that had it before; without `drafts`, a draft counts as absent. */
  async getBySlug(slug: string, { drafts }: { drafts: boolean }): Promise<Post | undefined> {
    const statements = this.#database.withSharedDeadline();
    for (const select of this.#selectBySlug) {
      const [row] = await statements.run((db) => select(db).execute({ slug }));
      if (row && isVisible(row, drafts)) return toPost(row);
    }
    return undefined;
  }

  /** Published posts without their whole contents, newest first. */
  async summaries(asked: Omit<PostFilter, 'drafts'>): Promise<SummaryPage> {
    const filter = { ...asked, drafts: false };
    if (findsNothing(filter)) return { posts: [], ends: undefined, beyond: { newer: 0, older: false } };
    const statements = this.#database.withSharedDeadline();
    const found = await this.#readSummaries(statements, filter);
    const page = found.slice(0, filter.limit).map(toSummary);
    if (filter.before) page.reverse();
    const ends = endsOf(page, filter);
    const isNewest = !filter.after && !filter.before;
    const beyond =
      isNewest || !ends
        ? { newer: 0, older: found.length > filter.limit }
        : await this.#neighboursOf(statements, filter, ends);
    return { posts: page, ends, beyond };
  }

  /** Newest first. A page of long posts has fewer than asked for; `next` is undefined on the last page alone. */
  async list(filter: PostFilter): Promise<{ posts: Post[]; next: Position | undefined }> {
    if (findsNothing(filter)) return { posts: [], next: undefined };
    const statements = this.#database.withSharedDeadline();
    const rows = await this.#readPage(statements, filter);
    const page = rows.map(({ more: _, ...row }) => toPost(row));
    const ends = endsOf(page, filter);
    const isLeadingOn =
      filter.before && ends
        ? (await this.#neighboursOf(statements, filter, ends)).older
        : rows.at(-1)?.more === true;
    return { posts: page, next: isLeadingOn ? ends?.oldest : undefined };
  }

  /** The newest published posts without their contents, newest first. */
  async newest(count: number): Promise<PostVersion[]> {
    const rows = await this.#database.run((db) => this.#selectNewest(db).execute({ count }), 'feed');
    return rows.map((row) => ({ ...row, updatedAt: toIsoTime(row.updatedAt) }));
  }

  /**
   * Creates a post. For a repeated request it returns the post that the first one created, as it is now. Throws
   * `Failure('idempotency_key_reused')` when the key was used with another hash. The key is looked at before the slug:
   * a repeated request finds its slug taken by its own post. The insertion is repeated without the key of a previous
   * user of the same name, and with another slug when another post has just taken the one made from the title.
   */
  async create(
    fields: PostFields,
    request?: PostRequest,
    token?: WriteToken,
  ): Promise<{ post: Post; replayed: boolean }> {
    const statements = this.#database.withSharedDeadline();
    for (let attempt = 1; attempt <= maxCreationAttempts; attempt++) {
      const values = { ...toValues(fields, request, attempt), token: token?.id ?? null };
      const [row] = await statements.run((db) => this.#insert(db).execute(values));
      if (row !== undefined) return { post: toPost(row), replayed: false };
      await requireActive(statements, token);
      const first = request && (await findFirst(statements, request));
      if (first?.isOwn) return { post: first.post, replayed: true };
      if (first === undefined && fields.slug !== undefined) break;
    }
    throw new Failure('slug_taken');
  }

  /** A slug made from the title stays while the title gives the same. */
  replace(id: string, fields: PostFields, condition: WriteCondition = {}): Promise<Change> {
    const { slug: given, ...values } = fields;
    const slug = given === undefined ? slugOfTitle(values.title, id) : slugAsGiven(given);
    return updatePost(this.#database.withSharedDeadline(), { id, values, slug, ...condition });
  }

  /** Without any changes the version stays. */
  patch(id: string, changes: PostChanges, condition: WriteCondition = {}): Promise<Change> {
    const statements = this.#database.withSharedDeadline();
    if (Object.values(changes).every((value) => value === undefined))
      return findExpected(statements, { id, ...condition });
    const { slug: given, ...values } = changes;
    if (given === undefined) return updatePost(statements, { id, values, slug: undefined, ...condition });
    if (given !== null) return updatePost(statements, { id, values, slug: slugAsGiven(given), ...condition });
    if (values.title === undefined) return remakeSlug(statements, { id, values, ...condition });
    return updatePost(statements, { id, values, slug: slugOfTitle(values.title, id), ...condition });
  }

  async remove(id: string, condition: WriteCondition = {}): Promise<Removal> {
    const statements = this.#database.withSharedDeadline();
    const [row] = await statements.run((db) =>
      db.delete(posts).where(isAllowed(id, condition)).returning({ id: posts.id }),
    );
    return row === undefined ? whyUnchanged(statements, id, condition) : { kind: 'removed' };
  }

  async #neighboursOf(statements: Statements, filter: PostFilter, ends: PageEnds): Promise<Neighbours> {
    const beyond = { ...filter, before: ends.newest, after: ends.oldest };
    const [found] = await this.#readNeighbours(statements, beyond);
    return found ?? { newer: 0, older: false };
  }
}

const selectById = (db: Drizzle) =>
  db
    .select(postColumns)
    .from(posts)
    .where(eq(posts.id, sql.placeholder('id')))
    .prepare('post');

const selectBySlug = (db: Drizzle) =>
  db
    .select(postColumns)
    .from(posts)
    .where(eq(posts.slug, sql.placeholder('slug')))
    .prepare('post-by-slug');

const selectByOldSlug = (db: Drizzle) =>
  db
    .select(postColumns)
    .from(posts)
    .innerJoin(oldSlugs, eq(oldSlugs.postId, posts.id))
    .where(eq(oldSlugs.slug, sql.placeholder('slug')))
    .prepare('post-by-old-slug');

const isVisible = ({ status }: Post, drafts: boolean): boolean => drafts || status === 'published';
