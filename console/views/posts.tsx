import { useEffect } from 'preact/hooks';
import { becomePost, editorOf, leaveEditor, unsavedPosts } from '../posts/post-editor.ts';
import { PostForm } from '../posts/post-form.tsx';
import { PostList, readFilter } from '../posts/post-list.tsx';
import type { ViewProps } from '../router.ts';
import { session } from '../session/session.ts';

/** All posts, at `#/posts/ID` one of them in its editor, and at `#/posts/new` one that is to be. */
export function PostsView({ args: [id], query }: ViewProps) {
  const userId = session.value?.user.id ?? '';
  if (id === undefined) return <PostList filter={readFilter(query)} unsaved={unsavedPosts(userId)} />;
  return <OnePost key={id} id={id} userId={userId} />;
}

function OnePost({ id, userId }: { id: string; userId: string }) {
  const editor = editorOf(userId, id);
  useEffect(() => () => leaveEditor(userId, id), [id, userId]);
  const onCreated = (created: string) => {
    if (id === 'new') becomePost(userId, created);
    location.replace(`#/posts/${created}`);
  };
  return (
    <PostForm
      editor={editor}
      id={id === 'new' ? undefined : id}
      onCreated={onCreated}
      onRemoved={() => location.replace('#/posts')}
    />
  );
}
