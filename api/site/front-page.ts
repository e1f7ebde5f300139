import { LRUCache } from 'lru-cache';
import type { MappedPost, MapState, PostMap } from '../../db/posts/post-lists.js';
import { providerIds } from '../../shared/contracts/contract.js';
import { providerModels } from '../../shared/models/provider-models.js';
import { postPath } from '../blog/blog-layout.js';
import { layOut, type Page, policyOf } from '../blog/page-layout.js';
import { escapeHtml } from '../blog/rendering/markdown.js';
import { type TaggedBytes, taggedBytes } from '../http/conditional.js';
import type { ProviderState, ProviderStates } from './provider-states.js';

/** The content of the front page. */
export interface Site {
  release: string;
  providers: ProviderStates;
  chatUrl: string;
  /** Paths of the base addresses, without a trailing slash. */
  chatPath: string;
  blogPath: string;
  blogTitle: string;
  /** The APIs of others that this server speaks. */
  apis: readonly SiteApi[];
}

/** An API of others, as the page presents it; the first of its operations begins chats. */
export interface SiteApi {
  readonly name: string;
  readonly title: string;
  readonly about: string;
  readonly operations: readonly { readonly path: string }[];
}

const name = 'Quillgate';
const description =
  'One gateway to the language models of four providers, and a blog. Requests wait in a durable queue: a worker that crashes loses none of them, and a provider that fails does not hold up the others.';

/** The front page for programs. The links are paths on this server. */
export const frontDocument = (site: Site): object => ({
  name,
  description,
  release: site.release,
  providers: site.providers,
  links: Object.fromEntries(linksOf(site).map(({ id, path }) => [id, path])),
});

/** The front page for people. */
export function frontPage(site: Site): Page {
  const html = layOut({
    title: name,
    language: 'en',
    head: [`<meta name="description" content="${escapeHtml(description)}">`],
    header: 'Chat and blog',
    main: `<h1>${name}</h1>
<p>${escapeHtml(description)}</p>
<pre><code class="copy">${escapeHtml(curl(site))}</code></pre>
<p class="about">Replace NAME with the name of a user; curl asks for the password.</p>
<p><a class="button" href="/admin#/playground">Open the playground</a></p>
<p class="about">${providersByState(site.providers).join('<br>\n')}</p>
<h2 id="links">What is here</h2>
<dl aria-labelledby="links">
${linksOf(site).flatMap(linkItem).join('\n')}
</dl>
`,
    footer: `Release ${escapeHtml(site.release)}`,
  });
  return { html, csp: policyOf(['none']) };
}

interface SiteLink {
  id: string;
  path: string;
  title: string;
  about: string;
  /** Where people read about it, when the address itself is for programs alone. */
  href?: string;
}

const linksOf = ({ chatPath, blogPath, blogTitle, apis }: Site): SiteLink[] => [
  {
    id: 'chat',
    path: `${chatPath}/chat`,
    title: 'Chat',
    about: `Send a conversation to ${chatPath}/chat, and name the provider in X-LLM.`,
    href: '/docs#/chat',
  },
  ...apis.map(({ name: id, title, about, operations: [{ path } = { path: '' }] }) => ({
    id,
    path,
    title,
    about,
    href: `/docs#/${id}`,
  })),
  { id: 'blog', path: `${blogPath}/blogs`, title: blogTitle, about: 'The blog, newest post first.' },
  {
    id: 'atomFeed',
    path: `${blogPath}/feed.xml`,
    title: 'Atom feed',
    about: 'The newest posts for feed readers.',
  },
  { id: 'jsonFeed', path: `${blogPath}/feed.json`, title: 'JSON feed', about: 'The same in JSON.' },
  { id: 'docs', path: '/docs', title: 'API', about: 'Every operation, to read and to try.' },
  { id: 'openapi', path: '/openapi.json', title: 'OpenAPI document', about: 'The same for programs.' },
  {
    id: 'console',
    path: '/admin',
    title: 'Console',
    about: 'For operators: how providers and workers are, and what can be changed.',
  },
  { id: 'health', path: '/readyz', title: 'Health', about: 'Whether database and queue can be reached.' },
];

function linkItem({ path, title, about, href = path }: SiteLink): string[] {
  return [
    `<dt dir="auto"><a href="${escapeHtml(href)}">${escapeHtml(title)}</a></dt>`,
    `<dd>${escapeHtml(about)}</dd>`,
  ];
}

/** The state, and what it means. */
const stateTexts: Record<ProviderState, readonly [string, string]> = {
  real: ['Real', 'conversations reach the provider'],
  simulated: ['Simulated', 'replies are invented here, and cost nothing'],
  no_worker: ['No worker', 'requests are refused at once'],
  unknown: ['Unknown', 'the queue cannot be reached at the moment'],
};

/** A line for each state that a provider is in. */
const providersByState = (states: ProviderStates): string[] =>
  Object.entries(stateTexts).flatMap(([state, [title, meaning]]) => {
    const names = providerIds.filter((id) => states[id] === state).map((id) => providerModels[id].title);
    return names.length > 0 ? [`<strong>${title}</strong>: ${names.join(', ')} (${meaning})`] : [];
  });

/** A request that the first provider with a worker answers. */
function curl({ chatUrl, providers }: Site): string {
  const id = providerIds.find((each) => ['real', 'simulated'].includes(providers[each])) ?? providerIds[0];
  const body = '{"messages":[{"role":"user","content":"Hello!"}]}';
  return [
    `curl -u NAME -H 'X-LLM: ${id}'`,
    "-H 'Content-Type: application/json'",
    `-d '${body}'`,
    chatUrl,
  ].join(' \\\n  ');
}

interface SitemapDeps {
  posts: PostMap;
  /** Public base address of the blog, without a trailing slash. */
  baseUrl: string;
}

/** Memory for documents, in bytes; a part of 10,000 posts takes one to two million. */
const maxBytes = 16_777_216;

/**
 * The sitemap of the published posts (https://www.sitemaps.org/protocol.html): an index, and parts numbered from 1,
 * oldest posts first. A document is written once for a state of the posts. Each request asks for the state, because a
 * post that was withdrawn must not be listed any longer; simultaneous ones share the answer.
 */
export class Sitemap {
  readonly #deps: SitemapDeps;
  /** By the number of the part, and the version of the posts; 0 is the index. */
  readonly #documents = new LRUCache<string, TaggedBytes, { part: number; parts: number }>({
    maxSize: maxBytes,
    sizeCalculation: ({ body }) => body.length,
    // A document that is evicted while it is written still answers those who wait for it.
    ignoreFetchAbort: true,
    fetchMethod: async (_key, _stale, { context: { part, parts } }) =>
      part === 0 ? this.#writeIndex(parts) : this.#writePart(await this.#deps.posts.part(part)),
  });
  #state: Promise<MapState> | undefined;

  constructor(deps: SitemapDeps) {
    this.#deps = deps;
  }

  /** The part of that number, or the index; undefined without such a part. Throws `Failure('database_unavailable')`. */
  async find(part = 0): Promise<TaggedBytes | undefined> {
    this.#state ??= this.#deps.posts.state().finally(() => {
      this.#state = undefined;
    });
    const { parts, version } = await this.#state;
    return part > parts
      ? undefined
      : this.#documents.forceFetch(`${part} ${version}`, { context: { part, parts } });
  }

  #writeIndex(parts: number): TaggedBytes {
    const addresses = Array.from({ length: parts }, (_, index) =>
      this.#address(`/sitemap.xml?part=${index + 1}`),
    );
    const items = addresses.map((address) => `<sitemap><loc>${address}</loc></sitemap>\n`);
    return toDocument(`<sitemapindex xmlns="${namespace}">\n${items.join('')}</sitemapindex>\n`);
  }

  #writePart(posts: readonly MappedPost[]): TaggedBytes {
    const urls = posts.map(
      (post) =>
        `<url><loc>${this.#address(postPath(post))}</loc><lastmod>${post.updatedAt.toISOString()}</lastmod></url>\n`,
    );
    return toDocument(`<urlset xmlns="${namespace}">\n${urls.join('')}</urlset>\n`);
  }

  #address(path: string): string {
    return escapeHtml(this.#deps.baseUrl + path);
  }
}

const namespace = 'http://www.sitemaps.org/schemas/sitemap/0.9';

const toDocument = (xml: string): TaggedBytes =>
  taggedBytes(Buffer.from(`<?xml version="1.0" encoding="UTF-8"?>\n${xml}`));
