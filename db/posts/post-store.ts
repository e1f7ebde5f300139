import type { Post, PostStatus } from '../../shared/contract.js';
import type { UserIdentity } from '../access/users.js';

/** The fields of a post that a caller sets. */
export interface PostFields {
  content: string;
  title: string | null;
  author: string;
  tags: string[];
  /** Undefined: made from the title. */
  slug: string | undefined;
  status: PostStatus;
}

/** The fields to change; absent ones stay. */
export interface PostChanges extends Partial<Omit<PostFields, 'slug'>> {
  /** Null: made from the title again. */
  slug?: string | null;
}

/** Identifies a request that creates a post, to recognise it when it is repeated. */
export interface PostRequest {
  /** The owner of its access token: each user has a namespace of keys. */
  user: UserIdentity;
  key: string;
  /** SHA-256 of everything in the request that determines the post. */
  hash: Buffer;
}

/** One version of one post: what an ETag is made of. */
export interface PostVersion {
  id: string;
  version: number;
  updatedAt: string;
}

/** The version of a post that a caller expects. */
export type PostVersionMark = Pick<PostVersion, 'version' | 'updatedAt'>;

/** Why a write with an expected version did not happen. */
export type Unchanged = { kind: 'missing' } | { kind: 'stale'; current: PostVersion };

export type Change = { kind: 'changed'; post: Post } | Unchanged;

export type Removal = { kind: 'removed' } | Unchanged;

/** A place in the list: behind the post that has these. */
export interface Position {
  sortedAt: Date;
  id: string;
}

/** Which posts a page shows; conditions that are absent hold for every post. */
export interface PostFilter {
  /** Maximum number of posts on the page. */
  limit: number;
  after?: Position;
  tag?: string;
  author?: string;
  /** Words, `"a phrase"`, `-word` and `or`, as people type them into a search engine. */
  search?: string;
  /** Whether drafts are shown too. */
  drafts: boolean;
}

/**
 * The posts in Postgres; one statement for every write. Ids are well-formed UUIDs, texts well-formed Unicode without
 * NUL. Without an expectation (`expected`) a write always happens; with one, when it names the post's version.
 * Everything may throw `Failure('database_unavailable')`, and what sets a slug `Failure('slug_taken')`.
 */
export interface PostStore {
  /**
   * A request that is known already gives the post it made, as it is now. Throws `Failure('idempotency_key_reused')`
   * when the key is known and the hash is another.
   */
  create(fields: PostFields, request?: PostRequest): Promise<{ post: Post; replayed: boolean }>;
  /** Undefined also for a draft when drafts are not to be seen. */
  get(id: string, options: { drafts: boolean }): Promise<Post | undefined>;
  /** Newest first. A page of long posts has fewer than asked for; `next` is undefined on the last page alone. */
  list(filter: PostFilter): Promise<{ posts: Post[]; next: Position | undefined }>;
  /** The newest published posts without their contents, newest first. */
  newest(count: number): Promise<PostVersion[]>;
  /** A slug made from the title stays while the title gives the same. */
  replace(id: string, fields: PostFields, expected?: readonly PostVersionMark[]): Promise<Change>;
  /** No changes make no new version. */
  patch(id: string, changes: PostChanges, expected?: readonly PostVersionMark[]): Promise<Change>;
  remove(id: string, expected?: readonly PostVersionMark[]): Promise<Removal>;
}
