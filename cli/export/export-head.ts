import { isDeepStrictEqual } from 'node:util';
import type { ExportedPost } from '../../db/posts/post-export.js';
import type { Post } from '../../shared/contract.js';
import { changeFrontMatter, renderFrontMatter, type YamlText } from '../import/front-matter-changes.js';
import { slugsOf } from '../import/import-slugs.js';
import { checkRawPost } from '../import/imported-post.js';
import { parseMarkdown } from '../import/post-files.js';

interface ExportedFile extends ExportedPost {
  path: string;
  defaultAuthor: string;
}

/**
 * The head of a post's file. If the post came from a file, this is that file's head, in which only fields that differ
 * from the post are changed. Where that is not possible, every field is written.
 */
export function headOf(file: ExportedFile): string {
  const { post, path, source } = file;
  if (source === null) return renderHead(post);
  if (source.isCurrent && source.path === path) return source.head;
  const changes = readAgain(source.head, file)?.changes;
  if (changes === undefined) return renderHead(post);
  const changed = changeFrontMatter(source.head, changes);
  // A head includes the blank line after it, which may be the first line of the content.
  const exact = [changed, `${changed}\n`].find((head) => {
    const again = readAgain(head, file);
    return again?.changes.size === 0 && again.content === post.content;
  });
  return exact ?? renderHead(post);
}

/** A head with every field in a fixed order. Strings are quoted as in JSON, so that no YAML parser misreads them. */
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

/** The content that an import would read after this head, and the changes that make the head match the post. */
function readAgain(head: string, { post, path, defaultAuthor }: ExportedFile) {
  const { post: raw } = parseMarkdown(path, head + post.content);
  if (raw === undefined) return undefined;
  const checked = checkRawPost(raw, defaultAuthor);
  if (checked.kind === 'wrong') return undefined;
  const { content, author = defaultAuthor, ...others } = checked.post;
  // The slug of the title that will be in the file, which is the post's if that differs from the file's.
  const givenTitle = post.title === checked.post.title ? checked.givenTitle : post.title;
  const { wanted } = slugsOf({ ...checked, givenTitle });
  const read = { ...others, author, slug: wanted };
  // An import leaves fields that the file does not have as they are.
  const differing = fields.filter(
    (field) => read[field] !== undefined && !isDeepStrictEqual(read[field], post[field]),
  );
  const names = differing.flatMap((field) => namesOf(field, raw.fields));
  return { content, changes: new Map(names.map((name) => [name, texts[name](post)])) };
}

/** The names by which a file has the field. */
function namesOf(field: Field, given: ReadonlyMap<string, unknown>): (keyof typeof texts)[] {
  const has = (name: string) => given.get(name) != null;
  if (field === 'publishedAt') {
    const names = (['publishedAt', 'publishDate', 'date'] as const).filter(has);
    return names.length > 0 ? names.slice(0, 1) : [field];
  }
  if (field !== 'status') return [field];
  const names = (['status', 'draft', 'published'] as const).filter(has);
  return names.length > 0 ? names : [field];
}
