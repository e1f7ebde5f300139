import { useEffect, useMemo, useRef } from 'preact/hooks';
import type { Post, PostStatus } from '../../shared/contracts/contract.ts';
import { ErrorNotice, SelectField, TextField } from '../parts/field.tsx';
import { formatTime } from '../parts/format.ts';
import { addressOf, PagedList } from '../parts/paged-table.tsx';

const typingMs = 300;

/** Posts, newest first, with drafts unless filtered out; `unsaved` are the ids of those whose editors hold a text. */
export function PostList({ filter, unsaved }: { filter: PostListFilter; unsaved: readonly string[] }) {
  const current = useRef(filter);
  current.current = filter;
  // One for all filters: what is there stays until the next is read.
  const list = useMemo(() => new PagedList<Post>((cursor) => addressOfPage(current.current, cursor)), []);
  useEffect(() => {
    void list.load();
    return () => list.close();
  }, [filter.search, filter.status]);
  const posts = list.rows.value;
  const next = list.next.value;
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
          <a href={`#/posts/${id}`}>{id === 'new' ? 'A new post' : titleIn(posts, id)}</a> has a text that is
          not saved.
        </p>
      ))}
      <ErrorNotice error={list.error.value} />
      <p class="soft" role="status">
        {list.isLoading.value ? 'Loading…' : posts && describeCount(posts, next, filter)}
      </p>
      <ul class="posts">
        {posts?.map((post) => (
          <PostItem key={post.id} post={post} />
        ))}
      </ul>
      {next !== null && (
        <button type="button" disabled={list.isLoading.value} onClick={() => void list.more()}>
          Show more
        </button>
      )}
    </>
  );
}

/** Typed text counts when the typing pauses, and at once when a status is chosen. */
function Filters({ filter }: { filter: PostListFilter }) {
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const search = useRef(filter.search);
  const show = (status: PostListFilter['status']) => {
    clearTimeout(timer.current);
    location.replace(fragmentOf({ search: search.current.trim(), status }));
  };
  const onInput = (text: string) => {
    search.current = text;
    clearTimeout(timer.current);
    timer.current = setTimeout(() => show(filter.status), typingMs);
  };
  useEffect(() => () => clearTimeout(timer.current), []);
  return (
    <search class="row">
      <TextField
        label="Search titles and texts"
        type="search"
        defaultValue={filter.search}
        maxLength={500}
        onInput={({ currentTarget }) => onInput(currentTarget.value)}
      />
      <SelectField
        label="Show"
        value={filter.status}
        options={statuses}
        onChange={({ currentTarget }) => show(currentTarget.value as PostListFilter['status'])}
      />
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

/** The name of a post in the console: its title, else the beginning of its text. */
export const headingOf = ({ title, content }: Pick<Post, 'title' | 'content'>): string =>
  title?.trim() || content.trim().slice(0, 80) || 'Untitled';

function titleIn(posts: readonly Post[] | undefined, id: string): string {
  const post = posts?.find((one) => one.id === id);
  return post ? headingOf(post) : 'A post';
}

/** Which posts the list shows; empty parts hold for every post. */
export interface PostListFilter {
  readonly search: string;
  readonly status: PostStatus | '';
}

/** The choices, in this order. */
const statuses: readonly (readonly [status: PostListFilter['status'], text: string])[] = [
  ['', 'All'],
  ['published', 'Published'],
  ['draft', 'Drafts'],
];

const pageSize = 20;

/** The filter in a fragment's query; a status that there is not counts as none. */
export function readFilter(query: URLSearchParams): PostListFilter {
  const status = statuses.find(([one]) => one === query.get('status'))?.[0] ?? '';
  return { search: query.get('q') ?? '', status };
}

const parametersOf = ({ search, status }: PostListFilter) => ({ q: search, status });

/** The fragment of the list with this filter. */
export const fragmentOf = (filter: PostListFilter): string => addressOf('#/posts', parametersOf(filter));

/** The address of a page of the list; `cursor` is the `next` of the one before. */
const addressOfPage = (filter: PostListFilter, cursor?: string): string =>
  addressOf('/admin/blogs', { ...parametersOf(filter), envelope: 'true', limit: String(pageSize), cursor });

const none = {
  '': 'There are no posts yet.',
  published: 'There are no published posts.',
  draft: 'There are no drafts.',
} as const;

/** How many posts were found, as a sentence. */
function describeCount(posts: readonly Post[], next: string | null, { search, status }: PostListFilter) {
  if (posts.length === 0) return search === '' ? none[status] : 'No posts found.';
  const found = search === '' ? '' : ' found';
  const noun = status === 'draft' ? 'draft' : 'post';
  const count = `${posts.length} ${noun}${posts.length === 1 ? '' : 's'}`;
  return next ? `The first ${count}${found}.` : `${count}${found}.`;
}
