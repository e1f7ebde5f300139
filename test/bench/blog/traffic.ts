import { etagOf } from '../../../api/blog/post-etag.js';
import { toCursor, toNewerCursor } from '../../../api/blog/post-query.js';
import type { Target, Traffic } from '../traffic.js';
import type { Task } from './results.js';
import { type BlogService, writerHeaders } from './service.js';

/** What the requests of a task look like; `farPage` and `feedTag` come from the API itself. */
export interface Found {
  readonly farPage: string;
  readonly feedTag: string;
}

/** Greater than every other id. */
const lastId = 'ffffffff-ffff-ffff-ffff-ffffffffffff';
const postsOnPage = 20;
const pageLimit = 20;
const farPageNumber = 500;

/** Path of the first page. */
export const firstPage = `/blogs?limit=${pageLimit}`;

const postFields = ['id', 'title', 'content', 'author', 'tags', 'slug', 'publishedAt', 'version'];
const onePost = { kind: 'object', fields: postFields } as const;
const fullPage = { kind: 'array', fields: postFields, length: pageLimit } as const;
const somePosts = { kind: 'array', fields: postFields } as const;

/** The requests of a task. Reads come without a token, as those of the public do. */
export function trafficOf(task: Task, { origin, seeded }: BlogService, found: Found): Traffic {
  const reading = (paths: readonly string[], body: Traffic['expected']['body']): Traffic => ({
    origin,
    method: 'GET',
    headers: {},
    targets: paths.map((path) => ({ path })),
    bodies: [],
    expected: { status: 200, body },
  });
  switch (task) {
    case 'get':
      return reading(seeded.ids.map(pathOf), onePost);
    case 'first page':
      return reading([firstPage], fullPage);
    case 'far page':
      return reading([found.farPage], fullPage);
    case 'search rare':
      return reading(seeded.words.rare.map(searchFor), somePosts);
    case 'search medium':
      return reading(seeded.words.medium.map(searchFor), somePosts);
    case 'search common':
      return reading(seeded.words.common.map(searchFor), somePosts);
    case 'tag':
      return reading(
        numbered(200, (n) => `${firstPage}&tag=tag-${n}`),
        somePosts,
      );
    case 'author':
      return reading(
        numbered(500, (n) => `${firstPage}&author=Author%20${n}`),
        somePosts,
      );
    case 'post page':
      return page(
        seeded.slugs.map((slug) => `/blogs/${slug}`),
        0,
      );
    case 'index page':
      return page(['/blogs'], postsOnPage);
    case 'far index page':
      return page(
        seeded.times.map((sortedAt) => `/blogs?cursor=${toCursor({ sortedAt, id: lastId })}`),
        1,
      );
    case 'newer index page':
      return page(
        seeded.times.map((sortedAt) => `/blogs?cursor=${toNewerCursor({ sortedAt, id: lastId })}`),
        0,
      );
    case 'far tag page':
      return page(
        seeded.times.map(
          (sortedAt, n) => `/blogs?tag=tag-${n % 200}&cursor=${toCursor({ sortedAt, id: lastId })}`,
        ),
        0,
      );
    case 'tag page':
      return page(
        numbered(200, (n) => `/blogs?tag=tag-${n}`),
        1,
      );
    case 'feed unchanged':
      return {
        ...reading(['/feed.json'], { kind: 'empty' }),
        headers: { 'If-None-Match': found.feedTag },
        expected: { status: 304, body: { kind: 'empty' } },
      };
    case 'patch':
      return writing('PATCH', seeded.versions.map(targetOf), seeded.contents.map(changed));
    case 'create':
      return writing('POST', [{ path: '/blogs' }], seeded.contents.map(fresh));
  }

  function page(paths: readonly string[], posts: number): Traffic {
    return { ...reading(paths, { kind: 'page', posts }), headers: { Accept: 'text/html' } };
  }

  function writing(method: 'PATCH' | 'POST', targets: readonly Target[], posts: readonly object[]): Traffic {
    const bodies = posts.map((post) => JSON.stringify(post));
    const status = method === 'POST' ? 201 : 200;
    return { origin, method, headers: writerHeaders, targets, bodies, expected: { status, body: onePost } };
  }
}

const pathOf = (id: string): string => `/blogs/${id}`;

/** As people send it: with the default number of posts on a page. */
const searchFor = (word: string): string => `/blogs?q=${word}`;

const numbered = (count: number, path: (n: number) => string): string[] =>
  Array.from({ length: count - 1 }, (_, index) => path(index + 1));

const targetOf = ({ id, ...version }: BlogService['seeded']['versions'][number]): Target => ({
  path: pathOf(id),
  etag: etagOf(version),
});

const changed = (content: string): object => ({ content: `${content} {unique}` });

const fresh = (content: string, place: number): object => ({
  title: `Post {unique} of the benchmark`,
  content,
  tags: [`tag-${1 + (place % 20)}`, 'benchmark'],
});

/** Asks the API for what later requests need: it walks through the pages, and reads the feed. */
export async function findOut({ origin }: BlogService, signal: AbortSignal): Promise<Found> {
  let farPage = firstPage;
  for (let page = 1; page < farPageNumber; page += 1) {
    const response = await ask(origin + farPage, signal);
    const next = /<([^>]*)>; rel="next"/.exec(response.headers.get('Link') ?? '')?.[1];
    if (next === undefined) throw new Error(`page ${page} of the posts names no next one`);
    farPage = next;
  }
  const feed = await ask(`${origin}/feed.json`, signal);
  return { farPage, feedTag: feed.headers.get('ETag') ?? '' };
}

async function ask(url: string, signal: AbortSignal): Promise<Response> {
  const response = await fetch(url, { signal });
  await response.arrayBuffer();
  if (!response.ok) throw new Error(`${new URL(url).pathname} was answered with ${response.status}`);
  return response;
}
