import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { PostSource } from '../../db/posts/post-export.js';
import type { ImportedPost } from '../../db/posts/post-import.js';
import { postInput } from '../../db/posts/post-rules.js';
import {
  optional,
  publicationFields,
  publicationProblems,
  publicationStatus,
  publicationTimeOf,
  time,
} from './publication.js';

/** A post as it is in a file, before it is checked. */
export interface RawPost {
  name: string;
  /** The fields of the file that are in `fieldNames`. */
  fields: ReadonlyMap<string, unknown>;
  content: unknown;
  /** The fields that its path and its text imply where they are missing. */
  implied: ImpliedFields | undefined;
  /** The text for its slug when its title leaves none. */
  fallbackTitle: string | null;
  source: PostSource | undefined;
  unused: readonly string[];
}

/** The fields that a file without front matter implies for its post. */
export interface ImpliedFields {
  title: string | null;
  day: string | undefined;
  isInDrafts: boolean;
}

/** A post that was checked, and what its slug is made from when it has none. */
export interface CheckedPost {
  name: string;
  post: Omit<ImportedPost, 'slug'>;
  slug: string | undefined;
  givenTitle: string | null;
  fallbackTitle: string | null;
  /** Eight hexadecimal digits that make its slug unique, the same at every import. */
  suffix: string;
  unused: readonly string[];
}

/** The result of a check; the problems do not quote the file. */
export type PostCheck = ({ kind: 'checked' } & CheckedPost) | { kind: 'wrong'; problems: string[] };

/** Leaves room for all later changes of the post. */
const greatestVersion = 999_999_999;
const wholeNumber = { error: 'must be a whole number, 1 or more' };

const schema = postInput
  .extend({
    id: optional(z.uuid({ error: 'must be a UUID' }).toLowerCase()),
    ...publicationFields,
    createdAt: optional(time),
    updatedAt: optional(time),
    version: optional(
      z.coerce
        .number(wholeNumber)
        .int(wholeNumber)
        .min(1, wholeNumber)
        .max(greatestVersion, `must be at most ${greatestVersion}`),
    ),
    /** From the file; not a field. */
    head: z
      .string()
      .refine((head) => !head.includes('\0'), 'must not contain NUL characters')
      .optional(),
  })
  .superRefine((fields, { addIssue }) => {
    for (const { field, message } of publicationProblems(fields))
      addIssue({ code: 'custom', path: [field], message });
  });

/** The fields that a file may have, including those of other programs. */
export const fieldNames: ReadonlySet<string> = new Set(
  Object.keys(schema.shape).filter((name) => !['content', 'head', 'isInDrafts'].includes(name)),
);

/**
 * Checks a post by the rules of the API, so that nothing is stored that it would refuse. `defaultAuthor` is for a new
 * post that names no author.
 */
export function checkRawPost(raw: RawPost, defaultAuthor: string): PostCheck {
  const input = toInput(raw);
  const { data, error } = schema.safeParse(input);
  const problems =
    error?.issues.map(({ path, message }) => `${raw.name}: ${path.join('.')}: ${message}`) ?? [];
  if (!isWellFormed(input)) problems.push(`${raw.name}: must be well-formed Unicode`);
  if (data === undefined || problems.length > 0) return { kind: 'wrong', problems };
  return { kind: 'checked', ...toChecked(raw, data, defaultAuthor) };
}

function toChecked(raw: RawPost, data: z.output<typeof schema>, defaultAuthor: string): CheckedPost {
  const { name, source, fallbackTitle } = raw;
  const { id, content, createdAt, updatedAt, version } = data;
  return {
    name,
    slug: data.slug ?? undefined,
    givenTitle: raw.fields.has('title') ? (data.title ?? null) : null,
    fallbackTitle,
    suffix: id?.slice(-8) ?? suffixOf(source?.path ?? content),
    unused: unusedOf(raw),
    post: {
      id,
      title: data.title ?? null,
      content,
      author: data.author ?? undefined,
      defaultAuthor,
      tags: data.tags ?? [],
      status: publicationStatus(data),
      publishedAt: publicationTimeOf(data),
      createdAt,
      updatedAt,
      version,
      source,
    },
  };
}

/** The input of the schema. A version without an id is not a post's version. */
function toInput({ fields, content, source, implied }: RawPost): Record<string, unknown> {
  const { tags, version, ...others } = Object.fromEntries(fields);
  return {
    ...(implied !== undefined && { title: implied.title, isInDrafts: implied.isInDrafts }),
    ...(!timeFields.some((name) => fields.has(name)) && { date: implied?.day }),
    ...others,
    content,
    head: source?.head,
    tags: typeof tags === 'string' ? splitList(tags) : tags,
    version: fields.get('id') == null ? undefined : version,
  };
}

const timeFields = ['publishedAt', 'publishDate', 'date'];

/** `expiryDate` is read only so that an expired post is not published. */
function unusedOf({ fields, unused }: RawPost): string[] {
  const ends = fields.get('expiryDate') == null ? [] : ['expiryDate'];
  return [...unused, ...ends, ...(fields.has('version') && fields.get('id') == null ? ['version'] : [])];
}

const splitList = (list: string): string[] =>
  list
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');

/** JSON can contain lone surrogates, which PostgreSQL would replace. */
const isWellFormed = (input: Record<string, unknown>): boolean =>
  Object.values(input)
    .flat()
    .every((value) => typeof value !== 'string' || value.isWellFormed());

const suffixOf = (text: string): string =>
  createHash('sha256').update(text, 'utf8').digest('hex').slice(0, 8);
