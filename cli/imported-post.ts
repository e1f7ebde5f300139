import { createHash } from 'node:crypto';
import { z } from 'zod';
import { postInput } from '../api/post-body.js';
import type { PostSource } from '../db/post-pages.js';
import type { ImportedPost } from '../db/post-transfer.js';
import { parseTime } from './time.js';

/** A post as a file has it, before it is checked. */
export interface RawPost {
  /** What reports call it. */
  name: string;
  /** What the file says, by the names of `fieldNames`. */
  fields: ReadonlyMap<string, unknown>;
  content: unknown;
  /** What its slug is made from when nothing is left of its title. */
  fallbackTitle: string | null;
  source: PostSource | undefined;
}

/** A post that was checked, and what its slug is made from when it has none. */
export interface CheckedPost {
  name: string;
  post: Omit<ImportedPost, 'slug'>;
  slug: string | undefined;
  fallbackTitle: string | null;
  /** Eight hexadecimal digits that tell its slug from others, the same at every import. */
  mark: string;
}

/** What came of a check; the problems are in words that do not quote the file. */
export type CheckResult = ({ kind: 'checked' } & CheckedPost) | { kind: 'wrong'; problems: string[] };

const time = z
  .string({ error: 'must be a time' })
  .refine((text) => parseTime(text) !== undefined, 'must be a time (RFC 3339) or a day (2030-12-31)')
  .transform((text) => parseTime(text));
/** Leaves room for every change that a post can still see. */
const greatestVersion = 999_999_999;
const wholeNumber = { error: 'must be a whole number, 1 or more' };

/** What a file leaves out or leaves empty is undefined. */
const optional = <T extends z.ZodType>(schema: T) =>
  schema.nullish().transform((value) => value ?? undefined);

const schema = postInput
  .extend({
    id: optional(z.uuid({ error: 'must be a UUID' }).toLowerCase()),
    draft: optional(z.literal([true, false, 'true', 'false'], { error: 'must be true or false' })),
    publishedAt: optional(time),
    date: optional(time),
    createdAt: optional(time),
    updatedAt: optional(time),
    version: optional(
      z.coerce
        .number(wholeNumber)
        .int(wholeNumber)
        .min(1, wholeNumber)
        .max(greatestVersion, `must be at most ${greatestVersion}`),
    ),
    /** Of the file; not a field. */
    head: z
      .string()
      .refine((head) => !head.includes('\0'), 'must not contain NUL characters')
      .optional(),
  })
  .refine(
    ({ draft, status }) => draft === undefined || status == null || isDraft(draft) === (status === 'draft'),
    {
      path: ['draft'],
      error: 'contradicts status',
    },
  );

const isDraft = (draft: boolean | string | undefined): boolean => String(draft) === 'true';

/** What a file may say about a post; `date` and `draft` are words of other programs. */
export const fieldNames: ReadonlySet<string> = new Set(
  Object.keys(schema.shape).filter((name) => name !== 'content' && name !== 'head'),
);

/**
 * Checks a post by the rules of the API, so that nothing gets in that it would refuse. `defaultAuthor` is for a new post
 * that names no author.
 */
export function checkRawPost(raw: RawPost, defaultAuthor: string): CheckResult {
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
    fallbackTitle,
    mark: id?.slice(-8) ?? markOf(source?.path ?? content),
    post: {
      id,
      title: data.title ?? null,
      content,
      author: data.author ?? undefined,
      defaultAuthor,
      tags: data.tags ?? [],
      status: data.status ?? (isDraft(data.draft) ? 'draft' : 'published'),
      publishedAt: data.publishedAt ?? data.date,
      createdAt,
      updatedAt,
      version,
      source,
    },
  };
}

/** What the schema is to look at. A version without an id is that of something else. */
function toInput({ fields, content, source }: RawPost): Record<string, unknown> {
  const { tags, draft, version, ...others } = Object.fromEntries(fields);
  return {
    ...others,
    content,
    head: source?.head,
    tags: typeof tags === 'string' ? splitList(tags) : tags,
    draft: typeof draft === 'string' ? draft.toLowerCase() : draft,
    version: fields.get('id') == null ? undefined : version,
  };
}

const splitList = (list: string): string[] =>
  list
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');

/** JSON can hold half a character; PostgreSQL would replace it. */
const isWellFormed = (input: Record<string, unknown>): boolean =>
  Object.values(input)
    .flat()
    .every((value) => typeof value !== 'string' || value.isWellFormed());

const markOf = (text: string): string => createHash('sha256').update(text, 'utf8').digest('hex').slice(0, 8);
