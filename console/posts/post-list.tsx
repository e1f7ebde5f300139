import { useEffect, useRef, useState } from 'preact/hooks';
import type { Post, PostPage } from '../../shared/contract.ts';
import { call } from '../api.ts';
import { formatTime } from '../parts/format.ts';
import { ErrorNotice } from '../parts/notice.tsx';

const pageSize = 20;
const typingMs = 300;

interface Listed {
  readonly posts: readonly Post[];
  readonly next: string | null;
}

/** All posts, drafts among them, newest first; `search` is what they are searched for. */
export function PostList({ search, unsaved }: { search: string; unsaved: readonly string[] }) {
  const { listed, error, isLoading, more } = useListed(search);
  return (
    <>
      <div class="row card-head">
        <h1>Posts</h1>
        <a class="button" href="#/posts/new">
          New post
        </a>
      </div>
      <Search search={search} />
      {unsaved.map((id) => (
        <p key={id} class="notice">
          <a href={`#/posts/${id}`}>{id === 'new' ? 'A new post' : titleIn(listed, id)}</a> has a text that is
          not saved.
        </p>
      ))}
      <ErrorNotice error={error} />
      <p class="soft" role="status">
        {isLoading ? 'Loading…' : listed && describeCount(listed, search)}
      </p>
      <ul class="posts">
        {listed?.posts.map((post) => (
          <PostItem key={post.id} post={post} />
        ))}
      </ul>
      {listed?.next && (
        <button type="button" disabled={isLoading} onClick={() => void more()}>
          Show more
        </button>
      )}
    </>
  );
}

function Search({ search }: { search: string }) {
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const look = (text: string) => location.replace(`#/posts${text && `?q=${encodeURIComponent(text)}`}`);
  const onInput = ({ currentTarget: { value } }: { currentTarget: HTMLInputElement }) => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => look(value.trim()), typingMs);
  };
  useEffect(() => () => clearTimeout(timer.current), []);
  return (
    <search>
      <label for="post-search">Search titles and texts</label>{' '}
      <input id="post-search" type="search" defaultValue={search} maxLength={500} onInput={onInput} />
    </search>
  );
}

function PostItem({ post }: { post: Post }) {
  const { id, status, author, tags, publishedAt, updatedAt, version } = post;
  return (
    <li>
      <p class="row">
        <a href={`#/posts/${id}`}>
          <bdi>{headingOf(post)}</bdi>
        </a>
        {status === 'draft' && <span class="badge warn">Draft</span>}
      </p>
      <p class="soft">
        <bdi>{author}</bdi> · {publishedAt ? formatTime(publishedAt) : `changed ${formatTime(updatedAt)}`} ·
        version {version}
        {tags.length > 0 && (
          <>
            {' · '}
            <bdi>{tags.join(', ')}</bdi>
          </>
        )}
      </p>
    </li>
  );
}

/** What a post is called in the console: its title, else how its text begins. */
export const headingOf = ({ title, content }: Pick<Post, 'title' | 'content'>): string =>
  title?.trim() || content.trim().slice(0, 80) || 'Untitled';

function titleIn(listed: Listed | undefined, id: string): string {
  const post = listed?.posts.find((one) => one.id === id);
  return post ? headingOf(post) : 'A post';
}

function describeCount({ posts, next }: Listed, search: string): string {
  const found = search === '' ? '' : ' found';
  if (posts.length === 0) return search === '' ? 'There are no posts yet.' : 'Nothing was found.';
  return next
    ? `The first ${posts.length} posts${found}.`
    : `${posts.length === 1 ? '1 post' : `${posts.length} posts`}${found}.`;
}

/** The list as far as it was read; a search that is overtaken by the next one counts no more. */
function useListed(search: string) {
  const [listed, setListed] = useState<Listed>();
  const [error, setError] = useState<unknown>();
  const [isLoading, setLoading] = useState(true);
  const current = useRef<AbortController>(undefined);
  const read = async (before?: Listed) => {
    current.current?.abort();
    const controller = new AbortController();
    const { signal } = controller;
    current.current = controller;
    setLoading(true);
    setError(undefined);
    try {
      const query = new URLSearchParams({ envelope: 'true', limit: String(pageSize) });
      if (search !== '') query.set('q', search);
      if (before?.next) query.set('cursor', before.next);
      const { body } = await call<PostPage>(`/admin/blogs?${query}`, { signal });
      setListed({ posts: [...(before?.posts ?? []), ...body.data], next: body.next });
      setLoading(false);
    } catch (failure) {
      if (signal.aborted) return;
      setError(failure);
      setLoading(false);
    }
  };
  useEffect(() => {
    void read();
    return () => current.current?.abort();
  }, [search]);
  return { listed, error, isLoading, more: () => read(listed) };
}
