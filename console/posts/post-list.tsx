import { useEffect, useRef, useState } from 'preact/hooks';
import type { Post, PostPage, PostStatus } from '../../shared/contract.ts';
import { call } from '../api.ts';
import { formatTime } from '../parts/format.ts';
import { ErrorNotice } from '../parts/notice.tsx';
import {
  addressOfPage,
  describeCount,
  fragmentOf,
  type Listed,
  type PostListFilter,
  statuses,
} from './post-filter.ts';

const typingMs = 300;

interface ListProps {
  filter: PostListFilter;
  /** Ids of the posts whose editors hold a text. */
  unsaved: readonly string[];
}

/** Posts, newest first; with drafts unless the filter leaves them out. */
export function PostList({ filter, unsaved }: ListProps) {
  const { listed, error, isLoading, more } = useListed(filter);
  return (
    <>
      <div class="row card-head">
        <h1>Posts</h1>
        <a class="button" href="#/posts/new">
          New post
        </a>
      </div>
      <Filters filter={filter} />
      {unsaved.map((id) => (
        <p key={id} class="notice">
          <a href={`#/posts/${id}`}>{id === 'new' ? 'A new post' : titleIn(listed, id)}</a> has a text that is
          not saved.
        </p>
      ))}
      <ErrorNotice error={error} />
      <p class="soft" role="status">
        {isLoading ? 'Loading…' : listed && describeCount(listed, filter)}
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

/** What is typed counts when the typing pauses, and at once when a status is chosen. */
function Filters({ filter }: { filter: PostListFilter }) {
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const search = useRef<HTMLInputElement>(null);
  const status = useRef<HTMLSelectElement>(null);
  const show = () => {
    clearTimeout(timer.current);
    const chosen = (status.current?.value ?? '') as PostStatus | '';
    location.replace(fragmentOf({ search: search.current?.value.trim() ?? '', status: chosen }));
  };
  const onInput = () => {
    clearTimeout(timer.current);
    timer.current = setTimeout(show, typingMs);
  };
  useEffect(() => () => clearTimeout(timer.current), []);
  return (
    <search class="row">
      <label for="post-search">Search titles and texts</label>
      <input
        id="post-search"
        ref={search}
        type="search"
        defaultValue={filter.search}
        maxLength={500}
        onInput={onInput}
      />
      <span class="field">
        <label for="post-status">Show</label>
        <select id="post-status" ref={status} value={filter.status} onChange={show}>
          {statuses.map(([value, text]) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </select>
      </span>
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

/** The list as far as it was read; a filter that is overtaken by the next one counts no more. */
function useListed({ search, status }: PostListFilter) {
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
      const { body } = await call<PostPage>(addressOfPage({ search, status }, before), { signal });
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
  }, [search, status]);
  return { listed, error, isLoading, more: () => read(listed) };
}
