import { once } from 'node:events';
import { LRUCache } from 'lru-cache';
import type { Post } from '../../../shared/contracts/contract.js';
import type { MarkdownRenderer } from './markdown.js';

/** A version of a post, with its content or at least 1,001 characters of it. */
export interface ExcerptedPost extends Pick<Post, 'id' | 'version' | 'updatedAt' | 'title'> {
  beginning: string;
}

/** Finds the excerpts of posts, in their order; undefined for one that could not be made in time. */
export type FindExcerpts = (posts: readonly ExcerptedPost[]) => Promise<(string | undefined)[]>;

/** Posts whose excerpts are kept, of some 600 bytes each. */
const maxCached = 5000;

/**
 * Makes the function that finds excerpts: once for a version of a post, in the renderer's thread, and one after the
 * other for each page, which waits for at most `maxWaitMs` milliseconds.
 */
export function createExcerpts(renderer: Pick<MarkdownRenderer, 'excerpt'>, maxWaitMs = 1000): FindExcerpts {
  const cache = new LRUCache<string, string, ExcerptedPost>({
    max: maxCached,
    // One that is evicted while it is made still answers those who wait for it.
    ignoreFetchAbort: true,
    fetchMethod: (_key, _stale, { context: { beginning, title } }) =>
      renderer.excerpt({ markdown: beginning, title }),
  });
  return async (posts) => {
    const late = AbortSignal.timeout(maxWaitMs);
    const makeAll = async () => {
      for (const post of posts)
        if (late.aborted || (await cache.fetch(keyOf(post), { context: post })) === undefined) return;
    };
    await Promise.race([makeAll(), once(late, 'abort')]);
    return posts.map((post) => cache.get(keyOf(post)));
  };
}

const keyOf = ({ id, version, updatedAt }: ExcerptedPost): string => `${id} ${version} ${updatedAt}`;
