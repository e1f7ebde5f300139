import {
  Body,
  Controller,
  Delete,
  Get,
  Header,
  Middlewares,
  OperationId,
  Patch,
  Path,
  Post,
  Produces,
  Put,
  Queries,
  Request,
  Response,
  Route,
  Security,
  SuccessResponse,
  Tags,
} from '@tsoa/runtime';
import type { Request as HttpRequest, Response as HttpResponse } from 'express';
import type { Change, PostStore } from '../../db/posts/post-store.js';
// `Post` is a decorator here, and tsoa knows decorators and schemas by their names: no alias of either would do.
import type * as contract from '../../shared/contract.js';
import type { PostInput, PostPage, PostPatch, Problem } from '../../shared/contract.js';
import { Failure } from '../../shared/failures.js';
import type { Caller } from '../access/authentication.js';
import { readJsonBody } from '../http/json-body.js';
import { checkUuidParam } from '../http/uuid-param.js';
import { checkPost, onlyOnce, postInput, postPatch, toPostChanges, toPostFields } from './post-body.js';
import { etagOf, expectedVersions, refusalOf } from './post-etag.js';
import { checkPostQuery, nextQuery, type PostQuery, toCursor, toPostFilter } from './post-query.js';
import { cacheControl, lastModified, type PostExport, sendPost } from './post-representations.js';

/** What the operations on posts need of the application. */
export interface BlogsDeps {
  posts: PostStore;
  /** Path part of the public base address, without a slash at its end. */
  basePath: string;
  pages: PostExport;
}

/** A request after its credentials were checked; a reader may have none. */
type AuthenticatedRequest = HttpRequest & { readonly user?: Caller };

@Route('blogs')
@Tags('blogs')
@Produces('application/problem+json')
@Response<Problem, { 'X-Request-Id': string }>('400', 'Bad request')
@Response<Problem, { 'X-Request-Id': string; 'WWW-Authenticate': string }>('401', 'No or wrong credentials')
@Response<Problem, { 'X-Request-Id': string; 'WWW-Authenticate': string }>('403', 'Insufficient scope')
@Response<Problem, { 'X-Request-Id': string; Allow: string }>('405', 'Another method')
@Response<Problem, { 'X-Request-Id': string; 'Retry-After': string }>(
  '429',
  'Too many failed logins, or reads without credentials',
)
@Response<Problem, { 'X-Request-Id': string }>('500', 'Server error')
@Response<Problem, { 'X-Request-Id': string; 'Retry-After': string }>('503', 'The database is unavailable')
export class BlogsController extends Controller {
  constructor(private readonly deps: BlogsDeps) {
    super();
  }

  /**
   * Publishes a post, or keeps it as a draft. Unknown fields are ignored and named in `X-Ignored-Fields`; with
   * `Prefer: handling=strict` they are refused.
   *
   * @summary Create a post
   * @param idempotencyKey 1 to 255 visible ASCII characters: a repeat with the same key gives the first post.
   * @param _prefer `handling=strict` refuses unknown fields.
   */
  @Post()
  @OperationId('createPost')
  @Security('bearer', ['blogs:write'])
  @Middlewares(readJsonBody, checkPost(postInput))
  @SuccessResponse<{
    'X-Request-Id': string;
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
    /** `true` when the post was made by an earlier request with this key. */
    'Idempotency-Replayed': string;
  }>('201', 'The post', 'application/json')
  @Response<Problem, { 'X-Request-Id': string }>('409', 'The slug is taken')
  @Response<Problem, { 'X-Request-Id': string }>('413', 'Body too large')
  @Response<Problem, { 'X-Request-Id': string }>('415', 'Not JSON')
  @Response<Problem, { 'X-Request-Id': string }>('422', 'The key was used with another request')
  async createPost(
    @Request() request: AuthenticatedRequest,
    @Body() body: PostInput,
    @Header('Idempotency-Key') idempotencyKey?: string,
    @Header('Prefer') _prefer?: string,
  ): Promise<contract.Post> {
    const user = writer(request);
    const fields = toPostFields(body, user.name);
    const once = onlyOnce({ user, key: idempotencyKey, fields });
    const { post, replayed } = await this.deps.posts.create(fields, once);
    this.setHeader('Location', `${this.deps.basePath}/blogs/${post.id}`);
    if (replayed) this.setHeader('Idempotency-Replayed', 'true');
    return this.written(post);
  }

  /**
   * Newest first. Drafts are seen only with a token that may write.
   *
   * @summary List posts
   */
  @Get()
  @OperationId('listPosts')
  @Security('bearer', ['blogs:read'])
  @Middlewares(checkPostQuery)
  @SuccessResponse<{
    'X-Request-Id': string;
    /** `<path of the next page>; rel="next"` whenever there is one. */
    Link: string;
    'Cache-Control': string;
    Vary: string;
  }>('200', 'One page of posts: an array, or with `envelope=true` an object', 'application/json')
  async listPosts(
    @Request() request: AuthenticatedRequest,
    @Queries() query: PostQuery,
  ): Promise<contract.Post[] | PostPage> {
    const filter = toPostFilter(query, { drafts: mayWrite(request) });
    const { posts, next: position } = await this.deps.posts.list(filter);
    const next = position ? toCursor(position) : null;
    if (next) this.setHeader('Link', `<${this.deps.basePath}/blogs?${nextQuery(query, next)}>; rel="next"`);
    this.setHeader('Cache-Control', cacheControl(request));
    this.setHeader('Vary', 'Authorization');
    return query.envelope ? { data: posts, next } : posts;
  }

  /**
   * As JSON, as the Markdown it was written in, or as a page.
   *
   * @summary Get a post
   * @param id Id of the post, a UUID.
   * @param _ifNoneMatch Entity tags that the client has: 304 when one of them is current.
   */
  @Get('{id}')
  @OperationId('getPost')
  @Security('bearer', ['blogs:read'])
  @Middlewares(checkUuidParam)
  @SuccessResponse<{
    'X-Request-Id': string;
    /** Version of the post in this representation. */
    ETag: string;
    'Last-Modified': string;
    'Cache-Control': string;
    Vary: string;
  }>('200', 'The post', ['application/json', 'text/markdown', 'text/html'])
  @Response<void, { 'X-Request-Id': string; ETag: string }>('304', 'Not modified')
  @Response<Problem, { 'X-Request-Id': string }>('404', 'No such post')
  async getPost(
    @Request() request: AuthenticatedRequest,
    @Path() id: string,
    @Header('If-None-Match') _ifNoneMatch?: string,
  ): Promise<contract.Post> {
    const post = await this.deps.posts.get(id, { drafts: mayWrite(request) });
    if (post === undefined) throw new Failure('not_found');
    await sendPost(request, request.res as HttpResponse, post, this.deps.pages);
    // For the description alone: what was sent is not sent again.
    return post;
  }

  /**
   * Optional fields that are absent get their defaults. Never creates a post.
   *
   * @summary Replace a post
   * @param id Id of the post, a UUID.
   * @param ifMatch Entity tags, one of which has to be current; otherwise 412.
   * @param _prefer `handling=strict` refuses unknown fields.
   */
  @Put('{id}')
  @OperationId('replacePost')
  @Security('bearer', ['blogs:write'])
  @Middlewares(checkUuidParam, readJsonBody, checkPost(postInput))
  @SuccessResponse<{
    'X-Request-Id': string;
    ETag: string;
    'Last-Modified': string;
    'X-Ignored-Fields': string;
    'Preference-Applied': string;
  }>('200', 'The post', 'application/json')
  @Response<Problem, { 'X-Request-Id': string }>('404', 'No such post')
  @Response<Problem, { 'X-Request-Id': string }>('409', 'The slug is taken')
  @Response<Problem, { 'X-Request-Id': string; ETag: string }>('412', 'The post has changed since')
  @Response<Problem, { 'X-Request-Id': string }>('413', 'Body too large')
  @Response<Problem, { 'X-Request-Id': string }>('415', 'Not JSON')
  async replacePost(
    @Request() request: AuthenticatedRequest,
    @Path() id: string,
    @Body() body: PostInput,
    @Header('If-Match') ifMatch?: string,
    @Header('Prefer') _prefer?: string,
  ): Promise<contract.Post> {
    const fields = toPostFields(body, writer(request).name);
    return this.written(outcomeOf(await this.deps.posts.replace(id, fields, expectedVersions(ifMatch))));
  }

  /**
   * A JSON merge patch (RFC 7396): absent fields stay as they are, null resets a field to its default.
   *
   * @summary Change fields of a post
   * @param id Id of the post, a UUID.
   * @param ifMatch Entity tags, one of which has to be current; otherwise 412.
   * @param _prefer `handling=strict` refuses unknown fields.
   */
  @Patch('{id}')
  @OperationId('patchPost')
  @Security('bearer', ['blogs:write'])
  @Middlewares(checkUuidParam, readJsonBody, checkPost(postPatch))
  @SuccessResponse<{
    'X-Request-Id': string;
    ETag: string;
    'Last-Modified': string;
    'X-Ignored-Fields': string;
    'Preference-Applied': string;
  }>('200', 'The post', 'application/json')
  @Response<Problem, { 'X-Request-Id': string }>('404', 'No such post')
  @Response<Problem, { 'X-Request-Id': string }>('409', 'The slug is taken')
  @Response<Problem, { 'X-Request-Id': string; ETag: string }>('412', 'The post has changed since')
  @Response<Problem, { 'X-Request-Id': string }>('413', 'Body too large')
  @Response<Problem, { 'X-Request-Id': string; 'Accept-Patch': string }>('415', 'Not a merge patch')
  async patchPost(
    @Request() request: AuthenticatedRequest,
    @Path() id: string,
    @Body() body: PostPatch,
    @Header('If-Match') ifMatch?: string,
    @Header('Prefer') _prefer?: string,
  ): Promise<contract.Post> {
    const changes = toPostChanges(body, writer(request).name);
    return this.written(outcomeOf(await this.deps.posts.patch(id, changes, expectedVersions(ifMatch))));
  }

  /**
   * For good; its slug is free again. Deleting it once more is 404.
   * @summary Delete a post
   * @param id Id of the post, a UUID.
   * @param ifMatch Entity tags, one of which has to be current; otherwise 412.
   */
  @Delete('{id}')
  @OperationId('deletePost')
  @Security('bearer', ['blogs:write'])
  @Middlewares(checkUuidParam)
  @SuccessResponse<{ 'X-Request-Id': string }>('204', 'Deleted')
  @Response<Problem, { 'X-Request-Id': string }>('404', 'No such post')
  @Response<Problem, { 'X-Request-Id': string; ETag: string }>('412', 'The post has changed since')
  async deletePost(@Path() id: string, @Header('If-Match') ifMatch?: string): Promise<void> {
    const removal = await this.deps.posts.remove(id, expectedVersions(ifMatch));
    if (removal.kind !== 'removed') throw refusalOf(removal);
  }

  private written(post: contract.Post): contract.Post {
    this.setHeader('ETag', etagOf(post));
    this.setHeader('Last-Modified', lastModified(post));
    return post;
  }
}

const mayWrite = ({ user }: AuthenticatedRequest): boolean => user?.scopes.includes('blogs:write') ?? false;

/** Whose token it is; a request without one does not get here. */
const writer = ({ user }: AuthenticatedRequest): Caller => user as Caller;

function outcomeOf(change: Change): contract.Post {
  if (change.kind !== 'changed') throw refusalOf(change);
  return change.post;
}
