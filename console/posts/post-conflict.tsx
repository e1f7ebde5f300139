import { formatTime } from '../parts/format.ts';
import type { Conflict, PostEditor } from './post-editor.ts';

export interface ConflictProps {
  editor: PostEditor;
  onCreated: (id: string) => void;
  onRemoved: () => void;
}

/** Another change came first: shows it, with the choices. The typed text stays until one is made. */
export function PostConflict({ editor, onCreated, onRemoved }: ConflictProps) {
  const conflict = editor.conflict.value;
  if (conflict === undefined) return null;
  const { theirs, wanted } = conflict;
  const overwrite = async () => {
    const isDone = await editor.overwrite();
    const saved = editor.stored.peek();
    if (isDone && wanted === 'deleted') onRemoved();
    else if (isDone && theirs === null && saved) onCreated(saved.post.id);
  };
  return (
    <div class="notice" role="alert">
      <Explanation theirs={theirs} wanted={wanted} />
      {theirs && (
        <details>
          <summary>What they have saved</summary>
          <p>
            <bdi>{theirs.post.title ?? 'Untitled'}</bdi>
            {theirs.post.status === 'draft' && ' (draft)'}
          </p>
          <pre dir="auto">{theirs.post.content}</pre>
        </details>
      )}
      <p class="row">
        {(theirs || wanted !== 'deleted') && (
          <button type="button" onClick={() => void overwrite()}>
            {labelOf(conflict)}
          </button>
        )}
        {theirs && (
          <button type="button" onClick={() => editor.discard()}>
            {wanted === 'deleted' ? 'Keep theirs' : 'Discard mine, take theirs'}
          </button>
        )}
      </p>
    </div>
  );
}

function labelOf({ theirs, wanted }: Conflict): string {
  if (wanted === 'deleted') return 'Delete it anyway';
  return theirs ? 'Save mine over theirs' : 'Save mine as a new post';
}

function Explanation({ theirs, wanted }: Conflict) {
  if (theirs === null)
    return (
      <p>
        <strong>Someone else deleted this post while you were editing.</strong> What you have typed is still
        in the form.
      </p>
    );
  const { version, updatedAt } = theirs.post;
  return (
    <p>
      <strong>Someone else saved this post while you were editing</strong>: version {version},{' '}
      {formatTime(updatedAt)}.{' '}
      {wanted === 'deleted'
        ? 'It was not deleted.'
        : 'Your changes were not saved; they are still in the form.'}
    </p>
  );
}
