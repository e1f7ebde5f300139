import { z } from 'zod';
import type { PostStatus } from '../../shared/contract.js';
import { earliestTime, parseTime } from '../output/time.js';

/**
 * Whether and when a post is public, in our words (`status`, `publishedAt`) and in those of Jekyll, Hugo, Obsidian and
 * others. What such a program shows to nobody must not be published by an import: it becomes a draft where the words
 * say so plainly, and is refused by name otherwise.
 */

/** What a file leaves out or leaves empty is undefined. */
export const optional = <T extends z.ZodType>(schema: T) =>
  schema.nullish().transform((value) => value ?? undefined);

/** A time, in UTC. */
export const time = z
  .string({ error: 'must be a time' })
  .refine((text) => parseTime(text) !== undefined, 'must be a time (RFC 3339) or a day (2030-12-31)')
  .transform((text) => parseTime(text));

/** A time, and the first moment at which it may have come. */
const moment = z
  .string({ error: 'must be a time' })
  .refine((text) => parseTime(text) !== undefined, 'must be a time (RFC 3339) or a day (2030-12-31)')
  .transform((text) => ({ time: parseTime(text), earliest: earliestTime(text) }));

const truth = z
  .preprocess(
    (value) => (typeof value === 'string' ? value.toLowerCase() : value),
    z.literal([true, false, 'true', 'false'], { error: 'must be true or false' }),
  )
  .transform((value) => String(value) === 'true');

/** Words of other programs, by what they are read as. */
export const publicationFields = {
  draft: optional(truth),
  published: optional(truth),
  publishedAt: optional(time),
  publishDate: optional(moment),
  date: optional(moment),
  expiryDate: optional(moment),
  publish: z.unknown().optional(),
  hidden: z.unknown().optional(),
  private: z.unknown().optional(),
  unlisted: z.unknown().optional(),
  /** Of the file's path; not a field. */
  isInDrafts: z.boolean().optional(),
};

type PublicationWords = Partial<z.output<z.ZodObject<typeof publicationFields>>> & {
  status?: PostStatus | null | undefined;
};

/** What the words come to. */
export const publicationStatus = ({ status, draft, published, isInDrafts }: PublicationWords): PostStatus =>
  status ?? (draft || published === false || isInDrafts ? 'draft' : 'published');

/** When the words say that the post was published. */
export const publicationTimeOf = ({ publishedAt, publishDate, date }: PublicationWords): string | undefined =>
  publishedAt ?? publishDate?.time ?? date?.time;

interface PublicationProblem {
  field: string;
  message: string;
}

/** What is wrong with the words together. */
export function publicationProblems(words: PublicationWords): PublicationProblem[] {
  return [
    ...contradictions(words),
    ...(publicationStatus(words) === 'published' ? reasonsToHide(words) : []),
  ];
}

function* contradictions({ status, draft, published }: PublicationWords): Generator<PublicationProblem> {
  const isDraft = status == null ? undefined : status === 'draft';
  if (isDraft !== undefined && draft === !isDraft) yield { field: 'draft', message: 'contradicts status' };
  if (isDraft !== undefined && published === isDraft)
    yield { field: 'published', message: 'contradicts status' };
  if (isDraft === undefined && draft !== undefined && draft === published)
    yield { field: 'published', message: 'contradicts draft' };
}

/** Who says `status: published` in our words wants it. */
function* reasonsToHide(words: PublicationWords): Generator<PublicationProblem> {
  if (words.status === 'published') return;
  const now = new Date().toISOString();
  for (const field of ['publishDate', 'date'] as const) {
    const { earliest } = words[field] ?? {};
    if (earliest !== undefined && earliest > now) yield { field, message: isInTheFuture };
  }
  const { time: end } = words.expiryDate ?? {};
  if (end !== undefined && end <= now) yield { field: 'expiryDate', message: isNotPublic };
  if (isNo(words.publish)) yield { field: 'publish', message: isNotPublic };
  for (const field of ['hidden', 'private', 'unlisted'] as const)
    if (words[field] != null && !isNo(words[field])) yield { field, message: isNotPublic };
}

const isNo = (value: unknown): boolean => /^(?:false|no|off|0)$/i.test(String(value));

const isInTheFuture =
  'is in the future, and the blog does not wait for it; import it as a draft (draft: true)';
const isNotPublic = 'says that the post is not public; import it as a draft (draft: true), or take it out';
