import { z } from 'zod';
import { isBlank } from '../../shared/conversation.js';
import { line, text } from '../../shared/validation.js';
import type { PostChanges } from './post-changes.js';
import type { PostFields } from './post-creation.js';

const maxTags = 20;
const tag = line({ max: 50, blank: false });
const tags = z
  .array(z.unknown(), { error: 'must be an array' })
  // Checked before the tags themselves, so that a million of them are one error.
  .max(maxTags, { error: `must have at most ${maxTags} items` })
  .pipe(z.array(tag))
  // Queries are normalized, too, so that a tag is found however its letters are composed.
  .transform((given) => [...new Set(given.map((one) => one.normalize('NFC')))])
  .meta({ items: z.toJSONSchema(tag, { target: 'openapi-3.0' }), maxItems: maxTags });

/** Marks, such as the vowels of Thai, belong to a letter. */
const words = /^[\p{L}\p{N}][\p{L}\p{N}\p{M}]*(?:-[\p{L}\p{N}][\p{L}\p{N}\p{M}]*)*$/u;

/** Which ASCII characters slugs have: a pattern that programs read alike with and without the flag for Unicode. */
const wordsInAscii = '^[^\\u0000-/:-`{-\\u007f]+(-[^\\u0000-/:-`{-\\u007f]+)*$';

/** Checks a slug. */
export const slug = z
  .string({ error: 'must be a string' })
  .normalize('NFC')
  .max(100, { error: 'must be at most 100 characters' })
  .refine((text) => Buffer.byteLength(text) <= 200, {
    error: 'must be at most 200 bytes in UTF-8',
    abort: true,
  })
  .refine(
    (text) => words.test(text) && text === text.toLowerCase().normalize('NFC'),
    'must be lowercase letters, digits and single hyphens',
  )
  .meta({ pattern: wordsInAscii });

/** Checks the body of a whole post. Absent fields stay absent, and null stays null. */
export const postInput = z.object(
  {
    content: text({ max: 262_144, blank: false }),
    title: line({ max: 300 }).nullish(),
    author: line({ max: 200, blank: false }).nullish(),
    tags: tags.nullish(),
    slug: slug.nullish(),
    status: z.enum(['published', 'draft'], { error: 'must be published or draft' }).nullish(),
  },
  { error: 'must be an object' },
);

/** Checks a merge patch (RFC 7396) of a post. */
export const postPatch = postInput.partial({ content: true });

/** Null for a blank title, too. */
export const titleOf = ({ title }: { title?: string | null | undefined }): string | null =>
  title == null || isBlank(title) ? null : title;

/** The post that a body describes, with all defaults; `author` is the author when the body names none. */
export function toPostFields(input: z.output<typeof postInput>, author: string): PostFields {
  return {
    content: input.content,
    title: titleOf(input),
    author: input.author ?? author,
    tags: input.tags ?? [],
    slug: input.slug ?? undefined,
    status: input.status ?? 'published',
  };
}

/** The changes that a merge patch describes: null resets a field to its default. */
export function toPostChanges(patch: z.output<typeof postPatch>, author: string): PostChanges {
  return {
    ...(patch.content !== undefined && { content: patch.content }),
    ...(patch.title !== undefined && { title: titleOf(patch) }),
    ...(patch.author !== undefined && { author: patch.author ?? author }),
    ...(patch.tags !== undefined && { tags: patch.tags ?? [] }),
    ...(patch.slug !== undefined && { slug: patch.slug }),
    ...(patch.status !== undefined && { status: patch.status ?? 'published' }),
  };
}
