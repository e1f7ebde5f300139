import { createHash } from 'node:crypto';
import { z } from 'zod';
import { slugOfTitle } from '../../db/posts/post-creation.js';
import { postInput, titleOf } from '../../db/posts/post-rules.js';
import type { ImportedPost } from '../../db/posts/post-transfer.js';
import { describeIssue } from '../../shared/validation.js';
import { parseTime } from '../output/fleet-tables.js';
import { reasonsToHide } from './hidden-posts.js';
import type { Field } from './markdown-file.js';

/** Facts that follow from the name and the text of a file. */
export interface ImpliedFacts {
  title: string | null;
  /** Which may not exist. */
  day: string | undefined;
  /** Why the program that the file is of does not show it. */
  hiddenBy: readonly string[];
  name: string;
}

/** A post as it is in a file, before it is checked. */
export interface RawPost {
  name: string;
  fields: ReadonlyMap<string, Field>;
  content: string;
  /** For what the fields do not say; the slug is made from `name` where they have no title. */
  implied: ImpliedFacts;
  source: ImportedPost['source'];
}

/** A post that was checked, with its name in reports. */
export interface CheckedPost {
  name: string;
  post: ImportedPost;
  /** Fields that posts do not have. */
  unused: readonly string[];
  /** Why the post is a draft although the file does not say `status: draft`. */
  hiddenBy: readonly string[];
}

const whole = { error: 'must be a whole number from 1 to 999999999' };
const time = z
  .string({ error: 'must be a time' })
  .refine((text) => parseTime(text) !== undefined, 'must be a time (RFC 3339) or a day (2030-12-31)')
  .nullish();
const publicationTimes = ['publishedAt', 'publishDate', 'date'] as const;
const schema = postInput.extend({
  id: z.uuid({ error: 'must be a UUID' }).toLowerCase().nullish(),
  publishedAt: time,
  publishDate: time,
  date: time,
  createdAt: time,
  updatedAt: time,
  // Leaves room for all later changes of the post.
  version: z.coerce.number(whole).int(whole).min(1, whole).max(999_999_999, whole).nullish(),
});
const ownNames = new Map(
  Object.keys(schema.omit({ content: true }).shape).map((name) => [name.toLowerCase(), name]),
);

/** Checks a post by the rules of the API. The problems do not quote the file. `defaultAuthor` is for a new post. */
export function checkPost(raw: RawPost, defaultAuthor: string): { post?: CheckedPost; problems: string[] } {
  const at = (field: string, message: string) => {
    const { line } = raw.fields.get(field) ?? {};
    const place = line ? `line ${line}: ` : field === 'date' ? 'its name: ' : '';
    return `${raw.name}: ${place}${message}`;
  };
  const given = Object.fromEntries([...raw.fields].map(([name, { value }]) => [name, value]));
  // An empty `date` is none, as in Jekyll; an export writes `publishedAt: null` for a draft.
  const isDated = 'publishedAt' in given || publicationTimes.some((name) => given[name] != null);
  const tags = typeof given.tags === 'string' ? tagsIn(given.tags, raw) : given.tags;
  const implied = { title: raw.implied.title, ...given, ...(!isDated && { date: raw.implied.day }) };
  const input = { ...implied, content: raw.content, tags };
  const { data, error } = schema.safeParse(input, { error: describeIssue });
  const problems = (error?.issues ?? []).map(({ path, message }) =>
    at(String(path[0]), `${path.join('.')}: ${message}`),
  );
  for (const field of raw.fields.keys()) {
    const own = ownNames.get(field.toLowerCase()) ?? field;
    if (own !== field) problems.push(at(field, `must be written ${own}`));
  }
  // Escapes in YAML can be lone surrogates, which PostgreSQL would replace.
  const texts = Object.values(input).flat();
  if (texts.some((text) => typeof text === 'string' && !text.isWellFormed()))
    problems.push(`${raw.name}: must be well-formed Unicode`);
  if (data === undefined || problems.length > 0) return { problems };
  return { post: toChecked(raw, data, defaultAuthor), problems };
}

/**
 * Jekyll parts a text at blanks (https://jekyllrb.com/docs/posts/#tags); its posts' names begin with a day. To Hexo and
 * Eleventy the whole text is one tag.
 */
function tagsIn(text: string, { implied }: RawPost): string[] {
  const isJekylls = implied.day !== undefined && !text.includes(',');
  return isJekylls ? text.trim().split(/\s+/) : text.split(',').map((tag) => tag.trim());
}

function toChecked(raw: RawPost, data: z.output<typeof schema>, defaultAuthor: string): CheckedPost {
  const { name, source, fields } = raw;
  const id = data.id ?? undefined;
  const when = publicationTimes.find((field) => data[field] != null);
  const hiddenBy = data.status == null ? reasonsToHide(fields, raw.implied) : [];
  // A version without an id is not that of a post.
  const idle: string[] = [...publicationTimes.filter((field) => field !== when), ...(id ? [] : ['version'])];
  const post = {
    id,
    source,
    defaultAuthor,
    content: data.content,
    title: titleOf(data),
    tags: data.tags ?? [],
    slug: data.slug ?? slugFor(raw),
    author: data.author ?? undefined,
    status: data.status ?? (hiddenBy.length > 0 ? ('draft' as const) : ('published' as const)),
    publishedAt: when && parseTime(data[when] ?? ''),
    createdAt: parseTime(data.createdAt ?? ''),
    updatedAt: parseTime(data.updatedAt ?? ''),
    version: id === undefined ? undefined : (data.version ?? undefined),
  };
  const unused = [...fields].filter(
    ([field, { value }]) => !ownNames.has(field.toLowerCase()) || (idle.includes(field) && value !== null),
  );
  return { name, post, unused: unused.map(([field]) => field), hiddenBy };
}

/** Made from the title of the front matter, else from the file's name: a heading is changed too easily. */
function slugFor({ fields, implied, source }: RawPost): string {
  const suffix = createHash('sha256').update(source.path, 'utf8').digest('hex').slice(0, 8);
  const slugOf = (text: unknown) => slugOfTitle(typeof text === 'string' ? text : null, suffix).wanted;
  const slug = slugOf(fields.get('title')?.value);
  return slug === slugOf(null) ? slugOf(implied.name) : slug;
}
