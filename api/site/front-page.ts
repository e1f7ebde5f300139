import { type ProviderId, providerIds } from '../../shared/contract.js';
import { layOut, type Page, policyOf } from '../blog/page-layout.js';
import { escapeHtml } from '../blog/rendering/markdown.js';
import type { ProviderState, ProviderStates } from './provider-states.js';

/** What the front page says. */
export interface Site {
  release: string;
  providers: ProviderStates;
  /** Paths of the base addresses, without a trailing slash. */
  chatPath: string;
  blogPath: string;
  /** Title of the blog. */
  blogTitle: string;
}

const name = 'Quillgate';
const description =
  'A gateway for conversations with the providers of language models, through a durable queue for each of them, and a blog.';

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
<p>When a worker dies, another one finishes its jobs; a provider that fails is left alone until it has recovered.</p>
<h2 id="providers">Providers</h2>
<ul class="states" aria-labelledby="providers">
${providerIds.map((id) => providerItem(id, site.providers[id])).join('\n')}
</ul>
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
  /** What people find there. */
  about: string;
  /** Where people read about it, when the address itself is for programs alone. */
  href?: string;
}

const linksOf = ({ chatPath, blogPath, blogTitle }: Site): SiteLink[] => [
  {
    id: 'chat',
    path: `${chatPath}/chat`,
    title: 'Chat',
    about: `Send a conversation to ${chatPath}/chat, and name the provider in X-LLM.`,
    href: '/docs#/chat',
  },
  {
    id: 'openai',
    path: '/v1/chat/completions',
    title: 'Chat with OpenAI’s clients',
    about: 'The same for every OpenAI-compatible client, with /v1 as its base address.',
    href: '/docs#/openai',
  },
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

const providerNames: Record<ProviderId, string> = {
  openai: 'OpenAI',
  anthropic: 'Anthropic',
  bedrock: 'Amazon Bedrock',
  vertexai: 'Google Vertex AI',
};

const stateTexts: Record<ProviderState, string> = {
  real: 'real: conversations reach the provider',
  simulated: 'simulated: replies are invented here, and cost nothing',
  no_worker: 'no worker: requests are refused at once',
  unknown: 'unknown: the queue cannot be reached at the moment',
};

const providerItem = (id: ProviderId, state: ProviderState): string =>
  `<li><strong>${providerNames[id]}</strong> ${stateTexts[state]}</li>`;
