import type { Post, PostInput, PostPatch, PostStatus } from '../../shared/contracts/contract.ts';
import { splitList } from '../parts/format.ts';

/** A post as its form holds it. */
export interface PostFields {
  readonly title: string;
  readonly content: string;
  /** Separated by commas. */
  readonly tags: string;
  readonly slug: string;
}

export const noFields: PostFields = { title: '', content: '', tags: '', slug: '' };

export const fieldsOf = ({ title, content, tags, slug }: Post): PostFields => ({
  title: title ?? '',
  content,
  tags: tags.join(', '),
  slug,
});

const parsers = {
  title: (text: string) => (text.trim() === '' ? null : text),
  content: (text: string) => text,
  tags: splitList,
  slug: (text: string) => (text.trim() === '' ? null : text.trim()),
};

const names = Object.keys(parsers) as (keyof PostFields)[];

export const isSame = (one: PostFields, other: PostFields): boolean =>
  names.every((name) => one[name] === other[name]);

/** The saved post, except for fields that were edited since. */
export const withStored = (fields: PostFields, sent: PostFields, stored: Post): PostFields => {
  const typed = names.filter((name) => fields[name] !== sent[name]);
  return { ...fieldsOf(stored), ...Object.fromEntries(typed.map((name) => [name, fields[name]])) };
};

export const toPostInput = (fields: PostFields, status: PostStatus): PostInput => ({
  content: fields.content,
  ...Object.fromEntries(names.map((name) => [name, parsers[name](fields[name])])),
  status,
});

/** Only what was changed: what the form cannot hold exactly, such as a tag with a comma, stays as it is. */
export function toPostPatch(fields: PostFields, stored: Post, status: PostStatus): PostPatch {
  const before = fieldsOf(stored);
  const changed = names.filter((name) => fields[name] !== before[name]);
  return {
    ...Object.fromEntries(changed.map((name) => [name, parsers[name](fields[name])])),
    ...(status !== stored.status && { status }),
  };
}
