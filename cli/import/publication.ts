import { z } from 'zod';
import type { PostStatus } from '../../shared/contract.js';
import { earliestTime, parseTime } from '../output/time.js';

/**
 * Whether and when a post is public, by our fields (`status`, `publishedAt`) and by those of Jekyll, Hugo, Obsidian and
 * others. An import must not publish what such a program hides: the post becomes a draft where the fields say so
 * plainly, and is refused by name otherwise.
 */

/** A field that is missing or empty becomes undefined. */
export const optional = <T extends z.ZodType>(schema: T) =>
  schema.nullish().transform((value) => value ?? undefined);

const timeText = z
  .string({ error: 'must be a time' })
  .refine((text) => parseTime(text) !== undefined, 'must be a time (RFC 3339) or a day (2030-12-31)');

/** A time, in UTC. */
export const time = timeText.transform(parseTime);

/** A time, and the earliest moment that it can mean. */
const moment = timeText.transform((text) => ({ time: parseTime(text), earliest: earliestTime(text) }));

const yesOrNo = z
  .preprocess(
    (value) => (typeof value === 'string' ? value.toLowerCase() : value),
    z.literal([true, false, 'true', 'false'], { error: 'must be true or false' }),
  )
  .transform((value) => String(value) === 'true');

/** Our fields and those of other programs, with their types. */
export const publicationFields = {
  draft: optional(yesOrNo),
  published: optional(yesOrNo),
  publishedAt: optional(time),
  publishDate: optional(moment),
  date: optional(moment),
  expiryDate: optional(moment),
  publish: z.unknown().optional(),
  hidden: z.unknown().optional(),
  private: z.unknown().optional(),
  unlisted: z.unknown().optional(),
  /** From the file's path; not a field. */
  isInDrafts: z.boolean().optional(),
};

type PublicationFields = Partial<z.output<z.ZodObject<typeof publicationFields>>> & {
  status?: PostStatus | null | undefined;
};

/** The status that the fields give. */
export const publicationStatus = ({ status, draft, published, isInDrafts }: PublicationFields): PostStatus =>
  status ?? (draft || published === false || isInDrafts ? 'draft' : 'published');

/** The time of publication that the fields give. */
export const publicationTimeOf = (fields: PublicationFields): string | undefined =>
  fields.publishedAt ?? fields.publishDate?.time ?? fields.date?.time;

interface PublicationProblem {
  field: string;
  message: string;
}

/** The contradictions between the fields, and the reasons not to publish the post. */
export function publicationProblems(fields: PublicationFields): PublicationProblem[] {
  return [
    ...contradictions(fields),
    ...(publicationStatus(fields) === 'published' ? reasonsToHide(fields) : []),
  ];
}

function* contradictions({ status, draft, published }: PublicationFields): Generator<PublicationProblem> {
  const isDraft = status == null ? undefined : status === 'draft';
  if (isDraft !== undefined && draft === !isDraft) yield { field: 'draft', message: 'contradicts status' };
  if (isDraft !== undefined && published === isDraft)
    yield { field: 'published', message: 'contradicts status' };
  if (isDraft === undefined && draft !== undefined && draft === published)
    yield { field: 'published', message: 'contradicts draft' };
}

/** None with our own `status: published`, which is explicit. */
function* reasonsToHide(fields: PublicationFields): Generator<PublicationProblem> {
  if (fields.status === 'published') return;
  const now = new Date().toISOString();
  for (const field of ['publishDate', 'date'] as const) {
    const { earliest } = fields[field] ?? {};
    if (earliest !== undefined && earliest > now) yield { field, message: isInTheFuture };
  }
  const { time: end } = fields.expiryDate ?? {};
  if (end !== undefined && end <= now) yield { field: 'expiryDate', message: isNotPublic };
  if (isNo(fields.publish)) yield { field: 'publish', message: isNotPublic };
  for (const field of ['hidden', 'private', 'unlisted'] as const)
    if (fields[field] != null && !isNo(fields[field])) yield { field, message: isNotPublic };
}

const isNo = (value: unknown): boolean => /^(?:false|no|off|0)$/i.test(String(value));

const isInTheFuture =
  'is in the future, and the blog does not wait for it; import it as a draft (draft: true)';
const isNotPublic = 'says that the post is not public; import it as a draft (draft: true), or take it out';
