import { providerIds } from '../../shared/contracts/contract.js';
import { providerModels } from '../../shared/models/provider-models.js';
import { layOut, type Page, policyOf } from '../blog/page-layout.js';
import { escapeHtml } from '../blog/rendering/markdown.js';
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
