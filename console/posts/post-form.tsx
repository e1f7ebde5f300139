import { Fragment } from 'preact';
import { useEffect } from 'preact/hooks';
import type { Post, PostStatus } from '../../shared/contracts/contract.ts';
import { ConfirmButton } from '../parts/confirm-button.tsx';
import { ErrorNotice } from '../parts/field.tsx';
import { formatTime } from '../parts/format.ts';
import type { Conflict, PostEditor } from './post-editor.ts';
import { headingOf } from './post-list.tsx';
import { PostPreview } from './post-preview.tsx';

/** A post, to be written and read side by side. */
export function PostForm({ editor, id, onCreated, onRemoved }: ConflictProps & { id: string | undefined }) {
  useEffect(() => {
    if (id) void editor.load(id);
  }, [editor, id]);
  useWarning(editor);
  const stored = editor.stored.value;
  const save = async (status: PostStatus) => {
    const wasNew = editor.stored.peek() === undefined;
    if (!(await editor.save(status))) return;
    const created = editor.stored.peek();
    if (wasNew && created) onCreated(created.post.id);
  };
  if (id && !stored)
    return (
      <>
        <BackToPosts />
        <h1>Post</h1>
        {editor.isBusy.value && <p role="status">Loading…</p>}
        <ErrorNotice error={editor.error.value} />
      </>
    );
  return (
    <>
      <BackToPosts />
      <h1>{stored ? <bdi>{headingOf(stored.post)}</bdi> : 'New post'}</h1>
      {stored && <About post={stored.post} />}
      <div class="columns editor">
        <form class="stacked" onSubmit={(event) => event.preventDefault()}>
          <Fields editor={editor} />
          <PostConflict editor={editor} onCreated={onCreated} onRemoved={onRemoved} />
          <ErrorNotice error={editor.error.value} />
          <p role="status">{editor.isBusy.value ? 'Saving…' : editor.done.value}</p>
          <SaveButtons editor={editor} save={(status) => void save(status)} />
        </form>
        <PostPreview content={editor.fields.value.content} />
      </div>
      {stored && (
        <ConfirmButton
          label="Delete"
          of="this post"
          question="Delete this post for good?"
          onConfirm={async () => {
            if (await editor.remove()) onRemoved();
          }}
        />
      )}
    </>
  );
}

const BackToPosts = () => (
  <p class="soft">
    <a href="#/posts">All posts</a>
  </p>
);

function About({ post }: { post: Post }) {
  return (
    <p class="row soft">
      <span class={post.status === 'draft' ? 'badge warn' : 'badge good'}>
        {post.status === 'draft' ? 'Draft' : 'Published'}
      </span>
      <span>
        by <bdi>{post.author}</bdi>, version {post.version}, changed {formatTime(post.updatedAt)}
      </span>
      <a href={`/admin/blogs/${post.id}`} target="_blank" rel="noreferrer">
        See its page
      </a>
    </p>
  );
}

const lines = [
  { name: 'title', label: 'Title', maxLength: 300 },
  { name: 'tags', label: 'Tags, separated by commas', maxLength: undefined },
  { name: 'slug', label: 'Slug in its address; made from the title if empty', maxLength: 100 },
] as const;

function Fields({ editor }: { editor: PostEditor }) {
  const fields = editor.fields.value;
  return (
    <>
      {lines.map(({ name, label, maxLength }) => (
        <Fragment key={name}>
          <label for={`post-${name}`}>{label}</label>
          <input
            id={`post-${name}`}
            dir="auto"
            maxLength={maxLength}
            value={fields[name]}
            onInput={({ currentTarget: { value } }) => editor.edit({ [name]: value })}
          />
        </Fragment>
      ))}
      <label for="post-content">Text, in Markdown</label>
      <textarea
        id="post-content"
        rows={20}
        dir="auto"
        spellcheck
        value={fields.content}
        onInput={({ currentTarget: { value } }) => editor.edit({ content: value })}
      />
    </>
  );
}

function SaveButtons({ editor, save }: { editor: PostEditor; save: (status: PostStatus) => void }) {
  const isPublished = editor.stored.value?.post.status === 'published';
  const isBusy = editor.isBusy.value;
  return (
    <p class="row">
      <button type="button" class="primary" disabled={isBusy} onClick={() => save('published')}>
        {isPublished ? 'Save' : 'Publish'}
      </button>
      <button type="button" disabled={isBusy} onClick={() => save('draft')}>
        {isPublished ? 'Take back to draft' : 'Save draft'}
      </button>
      {editor.isDirty.value && (
        <button type="button" disabled={isBusy} onClick={() => editor.discard()}>
          Discard changes
        </button>
      )}
    </p>
  );
}

/** The browser asks before a text is lost that was not saved. */
function useWarning(editor: PostEditor): void {
  useEffect(() => {
    const warn = (event: BeforeUnloadEvent) => {
      if (editor.isDirty.peek()) event.preventDefault();
    };
    addEventListener('beforeunload', warn);
    return () => removeEventListener('beforeunload', warn);
  }, [editor]);
}

interface ConflictProps {
  editor: PostEditor;
  onCreated: (id: string) => void;
  onRemoved: () => void;
}

/** Another change came first: shows it, with the choices. The typed text stays until one is made. */
function PostConflict({ editor, onCreated, onRemoved }: ConflictProps) {
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
