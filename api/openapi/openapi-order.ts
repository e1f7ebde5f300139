/** By group, in the order in which people use them, and by path; the generator sorts by file name. */
export const inOrder = <T>(paths: Readonly<Record<string, T>>): [path: string, T][] =>
  Object.entries(paths).sort(([a], [b]) => rankOf(a) - rankOf(b) || (a < b ? -1 : 1));

const rankOf = (path: string): number => Object.keys(groups).findIndex((start) => path.startsWith(start));

/** The group of the operations below a path. */
export const tagOf = (path: string): string | undefined =>
  Object.entries(groups).find(([start]) => path.startsWith(start))?.[1];

const groups = {
  '/chat': 'chat',
  '/v1/': 'openai',
  '/blogs': 'blogs',
  '/feed.': 'feeds',
  '/admin/': 'admin',
};

/** The groups of operations. */
export const tags = [
  {
    name: 'chat',
    description: 'Conversations with the providers of language models. Basic: name and secret.',
  },
  {
    name: 'openai',
    description: "The same conversations for the clients of OpenAI's API. Bearer: an access token; or Basic.",
  },
  { name: 'blogs', description: 'Posts in Markdown. Bearer: an access token.' },
  { name: 'feeds', description: 'The published posts, for feed readers.' },
  {
    name: 'admin',
    description:
      'For operators. Bearer: an access token with the scope admin; or the cookie of a session of the console. Below `/admin` they also find chat and posts: `/admin/chat`, `/admin/chat/{id}`, `/admin/v1/chat/completions`, `/admin/blogs` and `/admin/blogs/{id}` are as those without `/admin`, but for the credentials.',
  },
];
