import type { ChatApi } from '../chat-apis/chat-api.js';

/** A group of operations: those at `path`, and below it if that ends with a slash or a dot. */
export interface Group {
  readonly name: string;
  readonly description: string;
  readonly paths: readonly string[];
}

/** The groups, in the order in which people use them. */
export const groupsOf = (apis: readonly ChatApi[]): readonly Group[] => [
  {
    name: 'chat',
    description: 'Conversations with the providers of language models. Basic: name and secret.',
    paths: ['/chat', '/usage'],
  },
  ...apis.map(({ name, description, operations }) => ({
    name,
    description,
    paths: operations.map(({ path }) => documentPathOf(path)),
  })),
  { name: 'blogs', description: 'Posts in Markdown. Bearer: an access token.', paths: ['/blogs'] },
  { name: 'feeds', description: 'The published posts, for feed readers.', paths: ['/feed.'] },
  { name: 'admin', description: aboutAdmin(apis), paths: ['/admin/'] },
];

function aboutAdmin(apis: readonly ChatApi[]): string {
  const begun = apis.flatMap(({ operations }) => operations.filter(({ beginsChat }) => beginsChat));
  const chats = ['/chat', '/chat/{id}', ...begun.map(({ path }) => path)].map((path) => `\`/admin${path}\``);
  return `For operators. Bearer: an access token with the scope admin; or the cookie of a session of the console. Below \`/admin\` they also find chat and posts: ${chats.join(', ')}, \`/admin/blogs\` and \`/admin/blogs/{id}\` are as those without \`/admin\`, but for the credentials.`;
}

/** `/chat/:id` → `/chat/{id}`, as the document has it. */
export const documentPathOf = (path: string): string => path.replaceAll(/[:*](\w+)/g, '{$1}');

/** The group of a path. */
export const groupOf = (path: string, groups: readonly Group[]): Group | undefined =>
  groups.find(({ paths }) => paths.some((start) => path.startsWith(start)));

/** By group, and by path; the generator sorts by file name. */
export function inOrder<T>(
  paths: Readonly<Record<string, T>>,
  groups: readonly Group[],
): [path: string, T][] {
  const rankOf = (path: string) => groups.map(({ name }) => name).indexOf(groupOf(path, groups)?.name ?? '');
  return Object.entries(paths).sort(([a], [b]) => rankOf(a) - rankOf(b) || (a < b ? -1 : 1));
}
