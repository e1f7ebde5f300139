import { isDeepStrictEqual } from 'node:util';
import type { ExportedPost } from '../../db/posts/post-export.js';
import type { Post } from '../../shared/contract.js';
import { changeFrontMatter, renderFrontMatter, type YamlText } from '../import/front-matter-changes.js';
import { slugsOf } from '../import/import-slugs.js';
import { checkRawPost } from '../import/imported-post.js';
import { parseMarkdown } from '../import/post-files.js';

interface ExportedFile extends ExportedPost {
  /** The path that the post gets. */
  path: string;
  /** Author of an imported post that names none. */
  defaultAuthor: string;
}

/**
 * The head of a post's file. That of the file it came from is kept; only what an import would read from it that the
 * post has not is written anew. Where that cannot be done, every field is.
 */
export function headOf(file: ExportedFile): string {
  const { post, path, source } = file;
  if (source === null) return renderHead(post);
  if (source.isCurrent && source.path === path) return source.head;
  const changes = readAgain(source.head, file)?.changes;
  if (changes === undefined) return renderHead(post);
  const changed = changeFrontMatter(source.head, changes);
  // A head takes one empty line for its own, also that with which a content begins.
  const exact = [changed, `${changed}\n`].find((head) => {
    const again = readAgain(head, file);
    return again?.changes.size === 0 && again.content === post.content;
  });
  return exact ?? renderHead(post);
}

/** The head of a post's file: every field in a fixed order. Strings are quoted as in JSON, so that no YAML misreads them. */
export const renderHead = (post: Post): string =>
  renderFrontMatter(new Map(fields.map((field) => [field, texts[field](post)])));

type Field = Exclude<keyof Post, 'content'>;

const texts: Record<Field | 'date' | 'publishDate' | 'draft' | 'published', (post: Post) => YamlText> = {
  id: ({ id }) => id,
  title: ({ title }) => JSON.stringify(title),
  author: ({ author }) => JSON.stringify(author),
  tags: ({ tags }) => tags.map((tag) => JSON.stringify(tag)),
  slug: ({ slug }) => JSON.stringify(slug),
  status: ({ status }) => status,
  draft: ({ status }) => String(status === 'draft'),
  published: ({ status }) => String(status === 'published'),
  publishedAt: ({ publishedAt }) => String(publishedAt),
  publishDate: ({ publishedAt }) => String(publishedAt),
  date: ({ publishedAt }) => String(publishedAt),
  createdAt: ({ createdAt }) => createdAt,
  updatedAt: ({ updatedAt }) => updatedAt,
  version: ({ version }) => String(version),
};

const fields: readonly Field[] = [
  ...(['id', 'title', 'author', 'tags', 'slug', 'status'] as const),
  ...(['publishedAt', 'createdAt', 'updatedAt', 'version'] as const),
];

/** What an import would read from the file with this head, and what would have to change in it for the post as it is. */
function readAgain(
  head: string,
  { post, path, defaultAuthor }: ExportedFile,
): { content: string; changes: Map<string, YamlText> } | undefined {
  const { post: raw } = parseMarkdown(path, head + post.content);
  if (raw === undefined) return undefined;
  const checked = checkRawPost(raw, defaultAuthor);
  if (checked.kind === 'wrong') return undefined;
  const { content, author = defaultAuthor, ...others } = checked.post;
  // The slug that the title makes which it is to have: another one than now will be written.
  const givenTitle = post.title === checked.post.title ? checked.givenTitle : post.title;
  const { wanted } = slugsOf({ ...checked, givenTitle });
  const read = { ...others, author, slug: wanted };
  // What a file does not say stays as it is in the post.
  const differing = fields.filter(
    (field) => read[field] !== undefined && !isDeepStrictEqual(read[field], post[field]),
  );
  const words = differing.flatMap((field) => wordsFor(field, raw.fields));
  return { content, changes: new Map(words.map((word) => [word, texts[word](post)])) };
}

/** What a file calls a field. */
function wordsFor(field: Field, given: ReadonlyMap<string, unknown>): (keyof typeof texts)[] {
  const has = (word: string) => given.get(word) != null;
  if (field === 'publishedAt') {
    const words = (['publishedAt', 'publishDate', 'date'] as const).filter(has);
    return words.length > 0 ? words.slice(0, 1) : [field];
  }
  if (field !== 'status') return [field];
  const words = (['status', 'draft', 'published'] as const).filter(has);
  return words.length > 0 ? words : [field];
}
