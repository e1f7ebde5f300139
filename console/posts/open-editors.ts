import { PostEditor } from './post-editor.ts';

/** Unsaved texts outlive the view, and a session that ends in the meantime; each user has their own. */
const editors = new Map<string, PostEditor>();

const keyOf = (userId: string, id: string): string => `${userId} ${id}`;

/** The editor of a post, or of the one to come (`new`). */
export function editorOf(userId: string, id: string): PostEditor {
  const key = keyOf(userId, id);
  const known = editors.get(key);
  if (known) return known;
  const editor = new PostEditor();
  editors.set(key, editor);
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
