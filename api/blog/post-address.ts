import type { NextFunction, Request, Response } from 'express';
import type { PostStore } from '../../db/posts/post-store.js';
import type { Post } from '../../shared/contract.js';
import { Failure } from '../../shared/failures.js';
import { isUuid } from '../http/uuid-param.js';
import type { Blog } from './blog-layout.js';

const slug = /^[a-z0-9]+(-[a-z0-9]+)*$/;
const maxSlug = 100;

/** Throws `not_found` unless the `id` of the path can be the id or the slug of a post. */
export function checkPostReference(
  { params: { id } }: Request,
  _response: Response,
  next: NextFunction,
): void {
  if (typeof id !== 'string' || !(isUuid(id) || (id.length <= maxSlug && slug.test(id))))
    throw new Failure('not_found');
  next();
}

/** A post, and whether it still has the slug that it was asked for by. */
export interface FoundPost {
  post: Post;
  isCurrent: boolean;
}

/** The post of an id or a slug. Throws `not_found`, also for a draft unless `drafts` is set. */
export async function findPost(
  posts: Pick<PostStore, 'get' | 'getBySlug'>,
  reference: string,
  who: { drafts: boolean },
): Promise<FoundPost> {
  if (!isUuid(reference)) return (await posts.getBySlug(reference, who)) ?? missing();
  return { post: (await posts.get(reference, who)) ?? missing(), isCurrent: true };
}

function missing(): never {
  throw new Failure('not_found');
}

/** The path below which the request found the blog. */
export const basePathOf = ({ res }: Request, { basePath }: Pick<Blog, 'basePath'>): string =>
  res?.locals.basePath ?? basePath;

/** Path of a post, relative to the blog's base: by its slug, unless that looks like the id of another post. */
export const postPath = ({ id, slug }: Pick<Post, 'id' | 'slug'>): string =>
  `/blogs/${isUuid(slug) ? id : slug}`;
