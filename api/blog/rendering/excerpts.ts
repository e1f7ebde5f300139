import { LRUCache } from 'lru-cache';
import PQueue from 'p-queue';
import type { Post } from '../../../shared/contract.js';
import type { MarkdownRenderer } from './markdown.js';

/** A version of a post, with its content or at least 1,001 characters of it. */
export interface ExcerptedPost extends Pick<Post, 'id' | 'version' | 'updatedAt' | 'title'> {
  beginning: string;
}

/** Finds the excerpts of posts, in their order; undefined for one that could not be made in time. */
export type FindExcerpts = (posts: readonly ExcerptedPost[]) => Promise<(string | undefined)[]>;

/** Posts whose excerpts are kept, of some 600 bytes each. */
const maxCached = 5000;

/** Made at once. The costliest ten take 50 ms, for which the text of a post may have to wait. */
const atOnce = 10;

/**
 * Makes the function that finds excerpts: once for a version of a post, in the renderer's thread. All pages together
 * have one place in its queue, however many they are, so that they hold up no texts of posts. Each waits for at most
 * `maxWaitMs` milliseconds.
 */
export function createExcerpts(renderer: Pick<MarkdownRenderer, 'excerpts'>, maxWaitMs = 1000): FindExcerpts {
  const cache = new LRUCache<string, string>({ max: maxCached });
  const turns = new PQueue({ concurrency: 1 });
  const missingOf = (posts: readonly ExcerptedPost[]) => posts.filter((post) => !cache.has(keyOf(post)));
  /** Makes the next of those that are missing; false when the renderer has no time for them. */
  const makeSome = async (posts: readonly ExcerptedPost[]): Promise<boolean> => {
    // Another page may have made them meanwhile.
    const missing = missingOf(posts).slice(0, atOnce);
    if (missing.length === 0) return true;
    const made = await renderer.excerpts(missing.map(toText));
    for (const [index, post] of missing.entries()) cache.set(keyOf(post), made?.[index]);
    return made !== undefined;
  };
  return async (posts) => {
    const late = Promise.withResolvers<void>();
    const timer = setTimeout(late.resolve, maxWaitMs);
    let isOver = false;
    const makeAll = async (): Promise<void> => {
      while (missingOf(posts).length > 0)
        if (!(await turns.add(async () => !isOver && makeSome(posts)))) return;
    };
    try {
      await Promise.race([makeAll(), late.promise]);
    } finally {
      isOver = true;
      clearTimeout(timer);
    }
    return posts.map((post) => cache.get(keyOf(post)));
  };
}

const keyOf = ({ id, version, updatedAt }: ExcerptedPost): string => `${id} ${version} ${updatedAt}`;

/** Shows whether there are more than the 1,000 characters that are read. */
const toText = ({ beginning, title }: ExcerptedPost) => ({ markdown: beginning.slice(0, 1001), title });
