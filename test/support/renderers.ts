import { createMarkdownRenderer } from '../../api/blog/rendering/markdown.js';

type Limits = NonNullable<Parameters<typeof createMarkdownRenderer>[0]>;

/** Renders Markdown as the blog does, but without limits of time: a text takes as long as the machine needs. */
export const unhurriedRenderer = (limits: Limits = {}) =>
  createMarkdownRenderer({
    maxCpuMs: Number.POSITIVE_INFINITY,
    maxWaitMs: Number.POSITIVE_INFINITY,
    timeoutMs: Number.POSITIVE_INFINITY,
    ...limits,
  });
