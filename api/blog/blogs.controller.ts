import {
  Body,
  Controller,
  Delete,
  Get,
  Header,
  Middlewares,
  Patch,
  Path,
  Post,
  Put,
  Queries,
  Request,
  Response,
  Route,
  Security,
  SuccessResponse,
} from '@tsoa/runtime';
import type { WriteCondition } from '../../db/posts/post-changes.js';
import { postInput, postPatch, toPostChanges, toPostFields } from '../../db/posts/post-rules.js';
import type { PostStore } from '../../db/posts/post-store.js';
// `Post` is also a decorator, and tsoa identifies decorators and schemas by name: neither can have an alias.
import type * as contract from '../../shared/contracts/contract.js';
import type { PostInput, PostPage, PostPatch, Problem } from '../../shared/contracts/contract.js';
import { Failure } from '../../shared/failures.js';
import { writeTokenOf } from '../access/authentication.js';
import { type AuthenticatedRequest, mayWrite, type ReaderRequest } from '../access/caller.js';
import { readJsonBody } from '../http/json-body.js';
import { checkUuidParam, isUuid, prefersHtml } from '../http/query.js';
import { type Blog, basePathOf } from './blog-layout.js';
import { sendIndex } from './index-page.js';
import { checkPost, toPostRequest } from './post-body.js';
import type { PostPages } from './post-page.js';
import {
  checkPostQuery,
  checkPostReference,
  type PostQuery,
  queryOf,
  toCursor,
  toPostFilter,
} from './post-query.js';
import {
  answerWrite,
  expectedVersions,
  negotiatedHeaders,
  requireSuccess,
  sendFound,
} from './post-representations.js';
import type { FindExcerpts } from './rendering/excerpts.js';

/** The dependencies of the operations on posts. */
export interface BlogsDeps {
  posts: PostStore;
  blog: Blog;
  pages: PostPages;
  excerpts: FindExcerpts;
}

@Route('blogs')
@Response<Problem, { 'Retry-After': string }>('429', 'Too many failed logins, or too many anonymous reads')
@Response<Problem, { 'Retry-After': string }>('503', 'Overloaded, or the database is unavailable')
export class BlogsController extends Controller {
  constructor(private readonly deps: BlogsDeps) {
    super();
  }

  /**
   * Publishes a post or saves it as a draft. Unknown fields are ignored and listed in `X-Ignored-Fields`;
   * `Prefer: handling=strict` refuses them instead.
   *
   * @summary Create a post
   * @param idempotencyKey 1 to 255 visible ASCII characters. A retry with the same key returns the first post.
   * @param _prefer `handling=strict` refuses unknown fields.
   */
  @Post()
  @Security('bearer', ['blogs:write'])
  @Middlewares(readJsonBody, checkPost(postInput))
  @SuccessResponse<{
    /** Path of the post. */
    Location: string;
    /** Version of the post, for If-Match and If-None-Match. */
    ETag: string;
    /** When the post last changed. */
    'Last-Modified': string;
    /** Unknown and read-only fields of the body, percent-encoded. */
    'X-Ignored-Fields': string;
    /** `handling=strict` */
    'Preference-Applied': string;
    /** `true` when an earlier request with this key created the post. */
    'Idempotency-Replayed': string;
  }>('201', 'The post', 'application/json')
  @Response<Problem>('409', 'The slug is taken')
  @Response<Problem>('422', 'The key was already used for a different request')
  async createPost(
    @Request() request: AuthenticatedRequest,
    @Body() body: PostInput,
    @Header('Idempotency-Key') idempotencyKey?: string,
    @Header('Prefer') _prefer?: string,
  ): Promise<contract.Post> {
    const fields = toPostFields(body, request.user.name);
    const identity = toPostRequest({ user: request.user, key: idempotencyKey, fields });
    const { post, replayed } = await this.deps.posts.create(fields, identity, writeTokenOf(request));
    this.setHeader('Location', `${basePathOf(request, this.deps.blog)}/blogs/${post.id}`);
    if (replayed) this.setHeader('Idempotency-Replayed', 'true');
    return answerWrite(request, post);
  }

  /**
   * Newest first. Drafts are included only for tokens that may write. With `Accept: text/html`: a page for people,
   * without drafts.
   *
   * @summary List posts
   */
  @Get()
  @Security('bearer', ['blogs:read'])
  @Middlewares(checkPostQuery)
  @SuccessResponse<{
    /** `<path of the next page>; rel="next"`, when there is a next page. */
    Link: string;
    'Cache-Control': string;
    Vary: string;
  }>('200', 'One page of posts: an array, or an object with `envelope=true`', 'application/json')
  async listPosts(
    @Request() request: ReaderRequest,
    @Queries() query: PostQuery,
  ): Promise<contract.Post[] | PostPage> {
    if (prefersHtml(request)) return sendIndex(request, query, this.deps);
    const filter = { ...toPostFilter(query), drafts: mayWrite(request) };
    const { posts, next: position } = await this.deps.posts.list(filter);
    const next = position ? toCursor(position) : null;
    const path = `${basePathOf(request, this.deps.blog)}/blogs`;
    if (next) this.setHeader('Link', `<${path}?${queryOf({ ...query, cursor: next })}>; rel="next"`);
    request.res?.set(negotiatedHeaders(request));
    return query.envelope ? { data: posts, next } : posts;
  }

  /**
   * Answers with JSON, the Markdown source, or an HTML page, by the `Accept` header. A request for a page also gets its
   * errors as pages.
   *
   * @summary Get a post
   * @param id Id of the post, a UUID, or its slug; one that it had before leads to it with 308.
   * @param _ifNoneMatch Entity tags of the client's copies: 304 when one of them is current.
   */
  @Get('{id}')
  @Security('bearer', ['blogs:read'])
  @Middlewares(checkPostReference)
  @SuccessResponse<{
    /** Version of the post in this representation. */
    ETag: string;
    'Last-Modified': string;
    'Cache-Control': string;
    Vary: string;
  }>('200', 'The post', ['application/json', 'text/markdown', 'text/html'])
  @Response<void, { ETag: string }>('304', 'Not modified')
  @Response<void, { Location: string }>('308', 'The post has another slug now')
  @Response<Problem>('404', 'No such post')
  async getPost(
    @Request() request: ReaderRequest,
    @Path() id: string,
    @Header('If-None-Match') _ifNoneMatch?: string,
  ): Promise<contract.Post> {
    const { posts } = this.deps;
    const who = { drafts: mayWrite(request) };
    const post = await (isUuid(id) ? posts.get(id, who) : posts.getBySlug(id.normalize('NFC'), who));
    if (post === undefined) throw new Failure('not_found');
    await sendFound(request, post, this.deps);
    // For the document only: the answer has already been sent.
    return post;
  }

  /**
   * Absent optional fields are reset to their defaults. Never creates a post.
   *
   * @summary Replace a post
   * @param id Id of the post, a UUID.
   * @param ifMatch Entity tags: 412 unless one of them is current.
   * @param _prefer `handling=strict` refuses unknown fields.
   */
  @Put('{id}')
  @Security('bearer', ['blogs:write'])
  @Middlewares(checkUuidParam, readJsonBody, checkPost(postInput))
  @SuccessResponse<{
    ETag: string;
    'Last-Modified': string;
    /** Unknown and read-only fields of the body, percent-encoded. */
    'X-Ignored-Fields': string;
    'Preference-Applied': string;
  }>('200', 'The post', 'application/json')
  @Response<Problem>('404', 'No such post')
  @Response<Problem>('409', 'The slug is taken')
  @Response<Problem, { ETag: string }>('412', 'The post has changed')
  async replacePost(
    @Request() request: AuthenticatedRequest,
    @Path() id: string,
    @Body() body: PostInput,
    @Header('If-Match') ifMatch?: string,
    @Header('Prefer') _prefer?: string,
  ): Promise<contract.Post> {
    const fields = toPostFields(body, request.user.name);
    const change = await this.deps.posts.replace(id, fields, conditionOf(request, ifMatch));
    return answerWrite(request, requireSuccess(change).post);
  }

  /**
   * A JSON merge patch (RFC 7396): absent fields keep their values, null resets a field to its default.
   *
   * @summary Change fields of a post
   * @param id Id of the post, a UUID.
   * @param ifMatch Entity tags: 412 unless one of them is current.
   * @param _prefer `handling=strict` refuses unknown fields.
   */
  @Patch('{id}')
  @Security('bearer', ['blogs:write'])
  @Middlewares(checkUuidParam, readJsonBody, checkPost(postPatch))
  @SuccessResponse<{
    ETag: string;
    'Last-Modified': string;
    /** Unknown and read-only fields of the body, percent-encoded. */
    'X-Ignored-Fields': string;
    'Preference-Applied': string;
  }>('200', 'The post', 'application/json')
  @Response<Problem>('404', 'No such post')
  @Response<Problem>('409', 'The slug is taken')
  @Response<Problem, { ETag: string }>('412', 'The post has changed')
  @Response<Problem, { 'Accept-Patch': string }>('415', 'Not a merge patch')
  async patchPost(
    @Request() request: AuthenticatedRequest,
    @Path() id: string,
    @Body() body: PostPatch,
    @Header('If-Match') ifMatch?: string,
    @Header('Prefer') _prefer?: string,
  ): Promise<contract.Post> {
    const changes = toPostChanges(body, request.user.name);
    const change = await this.deps.posts.patch(id, changes, conditionOf(request, ifMatch));
    return answerWrite(request, requireSuccess(change).post);
  }

  /**
   * Permanently; its slug becomes available again. Deleting it a second time is 404.
   *
   * @summary Delete a post
   * @param id Id of the post, a UUID.
   * @param ifMatch Entity tags: 412 unless one of them is current.
   */
  @Delete('{id}')
  @Security('bearer', ['blogs:write'])
  @Middlewares(checkUuidParam)
  @SuccessResponse('204', 'Deleted')
  @Response<Problem>('404', 'No such post')
  @Response<Problem, { ETag: string }>('412', 'The post has changed')
  async deletePost(
    @Request() request: AuthenticatedRequest,
    @Path() id: string,
    @Header('If-Match') ifMatch?: string,
  ): Promise<void> {
    requireSuccess(await this.deps.posts.remove(id, conditionOf(request, ifMatch)));
  }
}

const conditionOf = (request: AuthenticatedRequest, ifMatch: string | undefined): WriteCondition => ({
  expected: expectedVersions(ifMatch),
  token: writeTokenOf(request),
});
