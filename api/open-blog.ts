import type { Database } from '../db/database/client.js';
import { createPostMap } from '../db/posts/post-map.js';
import { PostStore } from '../db/posts/post-store.js';
import type { Config } from '../shared/config/config.js';
import type { Lifecycle } from '../shared/runtime/lifecycle.js';
import type { Log } from '../shared/runtime/log.js';
import type { PreviewControllerDeps } from './admin/preview.controller.js';
import { blogOf } from './blog/blog-layout.js';
import type { BlogsDeps } from './blog/blogs.controller.js';
import type { FeedsControllerDeps } from './blog/feeds.controller.js';
import { createFeeds } from './blog/feeds.js';
import { createPostPages } from './blog/post-page.js';
import { createExcerpts } from './blog/rendering/excerpts.js';
import { createMarkdownRenderer } from './blog/rendering/markdown.js';
import { createPreview, createRenderedPosts } from './blog/rendering/rendered-posts.js';
import { Sitemap } from './site/sitemap.js';

/** The protocol allows 50,000; a part of this size is read in a fraction of a second. */
const postsPerSitemap = 10_000;

interface OpenBlog extends PreviewControllerDeps {
  blogs: BlogsDeps;
  feeds: FeedsControllerDeps;
  sitemap: Sitemap;
}

/** The parts of the blog; its renderer is closed with the lifecycle. */
export function openBlog(
  config: Config,
  { database, lifecycle, log }: { database: Database; lifecycle: Lifecycle; log: Log },
): OpenBlog {
  const blog = blogOf(config);
  const posts = new PostStore(database);
  const renderer = lifecycle.opened('renderer', createMarkdownRenderer(), (open) => open.close());
  const render = createRenderedPosts({ renderer, log });
  const excerpts = createExcerpts(renderer);
  const pages = createPostPages({ blog, images: config.BLOG_IMAGES, render, excerpts });
  const feeds = createFeeds({ blog, render, posts });
  const map = createPostMap(database, { partSize: postsPerSitemap });
  const sitemap = new Sitemap({ posts: map, baseUrl: blog.baseUrl });
  const blogs = { posts, blog, pages, excerpts };
  return { blogs, feeds: { feeds }, sitemap, preview: createPreview(renderer) };
}
