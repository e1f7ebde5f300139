import { isDeepStrictEqual } from 'node:util';
import { v7 as uuidv7 } from 'uuid';
import type { Post } from '../../shared/contracts/contract.js';
import type { Database } from '../database/client.js';
import type { Drizzle } from '../database/connections.js';
import { and, asc, eq, gt, or, sql } from '../database/drizzle.js';
import { postSources, posts } from '../schema.js';
import { postColumns, toPost } from './post-rows.js';

/** The file that made a post. */
export interface PostSource {
  /** Name of the folder that was imported; null for one whose import kept none. */
  folder: string | null;
  /** Relative to the folder, with `/`. */
  path: string;
}

type Optional = 'id' | 'author' | 'publishedAt' | 'createdAt' | 'updatedAt' | 'version';

/**
 * A post to be stored; times are RFC 3339 in UTC. What is undefined stays as it is: the id is that of the post with the
 * slug. `version` and `updatedAt` are of the post that the file was written from, and of a new post.
 */
export type ImportedPost = Omit<Post, Optional> & { [Field in Optional]: Post[Field] | undefined } & {
  /** Author of a new post that names none. */
  defaultAuthor: string;
  /** `head` is the file up to its content. */
  source: PostSource & { head: string };
};

/**
 * What storing a post does to the post of this id, or why it is refused:
 * - `taken`: that post has the slug and is another one,
 * - `stale`: it was changed after the file was imported or written,
 * - `foreign`: another file made it, `source`, or none did.
 */
export interface Outcome {
  kind: 'created' | 'changed' | 'unchanged' | 'taken' | 'stale' | 'foreign';
  id: string;
  stored?: Post;
  source?: PostSource | null;
  /** Whether the file is recorded for this version of the post already. */
  isRecorded?: boolean;
}

/** Imports and exports posts, drafts included. Everything may throw `Failure('database_unavailable')`. */
export class PostTransfer {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** The files of the posts that came from one, with the ids and slugs of these. */
  sources(): Promise<(PostSource & Pick<Post, 'id' | 'slug'>)[]> {
    const columns = { id: posts.id, slug: posts.slug, folder: postSources.folder, path: postSources.path };
    return this.#database.run((db) =>
      db.select(columns).from(posts).innerJoin(postSources, isSource).orderBy(asc(posts.id)),
    );
  }

  /** Every post in the order of the ids, in pages so small that each arrives in time: a post has up to 1 MiB. */
  async *pages(): AsyncGenerator<Post[]> {
    for (let last: Post | undefined; ; ) {
      const isLater = last && gt(posts.id, last.id);
      const rows: Post[] = await this.#database.run((db) =>
        db.select(postColumns).from(posts).where(isLater).orderBy(asc(posts.id)).limit(10),
      );
      last = rows.at(-1);
      if (last === undefined) return;
      yield rows.map(toPost);
    }
  }

  /** The outcome that storing the post would have now; with `force`, neither `stale` nor `foreign`. */
  async plan(post: ImportedPost, force: boolean): Promise<Outcome> {
    const { version, folder, path } = postSources;
    const columns = { ...postColumns, source: { version, folder, path } };
    const isNamed = or(eq(posts.slug, post.slug), post.id === undefined ? undefined : eq(posts.id, post.id));
    const rows = await this.#database.run((db) =>
      db.select(columns).from(posts).leftJoin(postSources, isSource).where(isNamed),
    );
    const own = rows.find(({ id }) => post.id === undefined || id === post.id);
    const other = rows.find((row) => row !== own);
    if (other !== undefined) return { kind: 'taken', id: other.id };
    if (own === undefined) return { kind: 'created', id: post.id ?? uuidv7() };
    const { source, ...row } = own;
    const stored = toPost(row);
    const isOwn = source !== null && isSameFile(source, post.source);
    const isRecorded = isOwn && source.version === row.version;
    const outcome = { id: row.id, stored, source, isRecorded };
    const differs = ([name, value]: [string, unknown]) =>
      !isDeepStrictEqual(value, stored[name as keyof Post]);
    if (!Object.entries(valuesOf(post, stored)).some(differs)) return { kind: 'unchanged', ...outcome };
    const { version: from, updatedAt = stored.updatedAt } = post;
    const isFromThis = from === stored.version && updatedAt === stored.updatedAt;
    if (force || isRecorded || isFromThis) return { kind: 'changed', ...outcome };
    return { kind: isOwn || post.version !== undefined ? 'stale' : 'foreign', ...outcome };
  }

  /**
   * Creates or changes a post, finds it equal and leaves it alone, or refuses it. Writes its file after it: if the
   * import ends there, the next finds the post unchanged. Plans again when another writer came before.
   */
  async store(post: ImportedPost, force: boolean): Promise<Outcome> {
    const outcome = await this.plan(post, force);
    const { kind, id, stored, isRecorded } = outcome;
    if (kind === 'taken' || kind === 'stale' || kind === 'foreign' || (kind === 'unchanged' && isRecorded))
      return outcome;
    const write = () => this.#database.run((db) => writePost(db, post, outcome));
    const [row] = kind === 'unchanged' ? [stored] : await write();
    if (row === undefined) return this.store(post, force);
    const source = { ...post.source, version: row.version };
    await this.#database.run((db) => {
      const insert = db.insert(postSources).values({ postId: id, ...source });
      return insert.onConflictDoUpdate({ target: postSources.postId, set: source });
    });
    return outcome;
  }
}

/** Some file systems decompose the letters of names, and others keep or compose them. */
const isSameFile = (one: PostSource, other: PostSource): boolean => keyOf(one) === keyOf(other);

const keyOf = ({ folder, path }: PostSource): string => JSON.stringify([folder, path]).normalize('NFC');

const isSource = eq(postSources.postId, posts.id);

/** The fields that a post gets, without the time of its change; times that are undefined are now. */
function valuesOf(post: ImportedPost, stored?: Post) {
  const { title, content, tags, slug, status } = post;
  const published = status === 'published' ? (stored ? undefined : post.createdAt) : null;
  return {
    title,
    content,
    tags,
    slug,
    status,
    author: post.author ?? stored?.author ?? post.defaultAuthor,
    publishedAt: post.publishedAt ?? stored?.publishedAt ?? published,
    createdAt: post.createdAt ?? stored?.createdAt,
  };
}

/** Gives no row when the post is not as planned any more. */
function writePost(db: Drizzle, post: ImportedPost, { id, stored }: Outcome) {
  const { createdAt, publishedAt, ...texts } = valuesOf(post, stored);
  const times = { createdAt: at(createdAt), publishedAt: publishedAt === null ? null : at(publishedAt) };
  const { version } = posts;
  if (stored === undefined) {
    const values = { id, ...texts, ...times, updatedAt: at(post.updatedAt ?? createdAt) };
    const insert = db.insert(posts).values({ ...values, version: post.version ?? 1 });
    return insert.onConflictDoNothing().returning({ version });
  }
  const changes = { ...texts, ...times, updatedAt: at(undefined), version: sql`${version} + 1` };
  const isAsPlanned = and(eq(posts.id, id), eq(version, stored.version));
  return db.update(posts).set(changes).where(isAsPlanned).returning({ version });
}

const at = (time: string | undefined) => (time === undefined ? sql`now()` : new Date(time));
