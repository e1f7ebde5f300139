import { computed, signal } from '@preact/signals';
import type { Post, PostStatus } from '../../shared/contracts/contract.ts';
import { ApiError, type CallOptions, call } from '../api.ts';
import {
  fieldsOf,
  isSame,
  noFields,
  type PostFields,
  toPostInput,
  toPostPatch,
  withStored,
} from './post-fields.ts';

/** A post as the server has it, and the tag that a change has to name. */
interface Stored {
  readonly post: Post;
  readonly etag: string;
}

type Wanted = PostStatus | 'deleted';

/** Why a change was not made: the post that was saved meanwhile, or null for a deleted one. */
export interface Conflict {
  readonly theirs: Stored | null;
  readonly wanted: Wanted;
}

const addressOf = (id: string): string => `/admin/blogs/${encodeURIComponent(id)}`;

async function callForPost(path: string, options?: CallOptions): Promise<Stored> {
  const { body, headers } = await call<Post>(path, options);
  return { post: body, etag: headers.get('ETag') ?? '' };
}

/** One post in its form. The typed text is kept here until it is saved or discarded, even without the view. */
export class PostEditor {
  readonly fields = signal(noFields);
  /** Undefined while it is new, or not loaded yet. */
  readonly stored = signal<Stored | undefined>(undefined);
  readonly isBusy = signal(false);
  readonly error = signal<unknown>(undefined);
  readonly conflict = signal<Conflict | undefined>(undefined);
  readonly done = signal('');
  readonly isDirty = computed(() => {
    const stored = this.stored.value;
    return !isSame(this.fields.value, stored ? fieldsOf(stored.post) : noFields);
  });
  /** So that a request that is sent again, because its answer was lost, creates no second post. */
  #sent: { readonly body: string; readonly key: string } | undefined;

  edit(change: Partial<PostFields>): void {
    this.fields.value = { ...this.fields.value, ...change };
    this.done.value = '';
  }

  /** Reads the post, unless that was done before: what is typed is based on that version. */
  async load(id: string): Promise<void> {
    if (this.stored.value) return;
    await this.#run(async () => this.#take(await callForPost(addressOf(id))));
  }

  /** Saves what was typed; false when it was not, and then `conflict` or `error` says why. */
  save(status: PostStatus): Promise<boolean> {
    const stored = this.stored.value;
    return this.#run(async () => {
      if (stored) await this.#change(stored, status);
      else await this.#create(status);
      const { version = 1 } = this.stored.value?.post ?? {};
      const saved = status === 'draft' ? 'Saved as a draft' : 'Published';
      this.done.value = `${saved}: version ${version}.`;
    });
  }

  /** Overwrites the other change; if that was a deletion, the typed text becomes a new post. */
  async overwrite(): Promise<boolean> {
    const conflict = this.conflict.value;
    if (conflict === undefined) return false;
    this.stored.value = conflict.theirs ?? undefined;
    return conflict.wanted === 'deleted' ? this.remove() : this.save(conflict.wanted);
  }

  /** Discards the typed text, for the other change or the saved post. */
  discard(): void {
    const latest = this.conflict.value?.theirs ?? this.stored.value;
    if (latest) this.#take(latest);
    else this.fields.value = noFields;
    this.conflict.value = undefined;
    this.error.value = undefined;
  }

  remove(): Promise<boolean> {
    const stored = this.stored.value;
    return this.#run(async () => {
      if (stored === undefined) return;
      const { post, etag } = stored;
      const options = { method: 'DELETE', headers: { 'If-Match': etag } } as const;
      await this.#orConflict(post.id, 'deleted', () => call(addressOf(post.id), options)).catch((error) => {
        // That is what was wanted.
        if (!(error instanceof ApiError && error.code === 'not_found')) throw error;
      });
      this.fields.value = fieldsOf(post);
    });
  }

  async #create(status: PostStatus): Promise<void> {
    const sent = this.fields.value;
    const json = toPostInput(sent, status);
    const body = JSON.stringify(json);
    if (this.#sent?.body !== body) this.#sent = { body, key: randomKey() };
    const headers = { 'Idempotency-Key': this.#sent.key };
    this.#take(await callForPost('/admin/blogs', { method: 'POST', json, headers }), sent);
    this.#sent = undefined;
  }

  async #change({ post, etag }: Stored, status: PostStatus): Promise<void> {
    const sent = this.fields.value;
    const json = toPostPatch(sent, post, status);
    const headers = { 'If-Match': etag };
    const change = () => callForPost(addressOf(post.id), { method: 'PATCH', json, headers });
    try {
      this.#take(await this.#orConflict(post.id, status, change), sent);
    } catch (error) {
      const theirs = this.conflict.value?.theirs;
      // It is what was sent before, and only the answer was lost.
      if (!theirs || theirs.post.status !== status || !isSame(fieldsOf(theirs.post), sent)) throw error;
      this.conflict.value = undefined;
      this.#take(theirs, sent);
    }
  }

  /** Gives the result of the call; rethrows its error, after reading the other change. */
  async #orConflict<T>(id: string, wanted: Wanted, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      const code = error instanceof ApiError && error.code;
      if (code === 'not_found' && wanted !== 'deleted') this.conflict.value = { theirs: null, wanted };
      if (code === 'precondition_failed') this.conflict.value = { theirs: await readLatest(id), wanted };
      throw error;
    }
  }

  /** Takes what the server has; what was typed since `sent` stays. */
  #take(stored: Stored, sent = this.fields.value): void {
    this.stored.value = stored;
    this.fields.value = withStored(this.fields.value, sent, stored.post);
  }

  async #run(work: () => Promise<void>): Promise<boolean> {
    if (this.isBusy.value) return false;
    this.isBusy.value = true;
    this.error.value = undefined;
    this.conflict.value = undefined;
    this.done.value = '';
    try {
      await work();
      return true;
    } catch (error) {
      // The choices say it better than the server's words.
      if (this.conflict.value === undefined) this.error.value = error;
      return false;
    } finally {
      this.isBusy.value = false;
    }
  }
}

async function readLatest(id: string): Promise<Stored | null> {
  try {
    return await callForPost(addressOf(id));
  } catch (error) {
    if (error instanceof ApiError && error.code === 'not_found') return null;
    throw error;
  }
}

/** `crypto.randomUUID` is for https and localhost alone. */
const randomKey = (): string =>
  [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('');

/** Unsaved texts outlive the view, and a session that ends in the meantime; each user has their own. */
const editors = new Map<string, PostEditor>();

const keyOf = (userId: string, id: string): string => `${userId} ${id}`;

/** The editor of a post, or of the one to come (`new`). */
export function editorOf(userId: string, id: string): PostEditor {
  const editor = editors.get(keyOf(userId, id)) ?? new PostEditor();
  editors.set(keyOf(userId, id), editor);
  return editor;
}

/** Gives the editor of the post to come to the post that it has become. */
export function becomePost(userId: string, id: string): void {
  const editor = editors.get(keyOf(userId, 'new'));
  if (editor) editors.set(keyOf(userId, id), editor);
  editors.delete(keyOf(userId, 'new'));
}

/** To be called when the view of a post goes: keeps the editor only if there is something to lose. */
export function leaveEditor(userId: string, id: string): void {
  const key = keyOf(userId, id);
  if (!editors.get(key)?.isDirty.peek()) editors.delete(key);
}

/** The posts with a text that was not saved. */
export const unsavedPosts = (userId: string): string[] =>
  [...editors].flatMap(([key, { isDirty }]) =>
    key.startsWith(`${userId} `) && isDirty.peek() ? [key.slice(userId.length + 1)] : [],
  );
