import {
  Controller,
  Get,
  Header,
  OperationId,
  Produces,
  Request,
  Response,
  Route,
  Security,
  SuccessResponse,
  Tags,
} from '@tsoa/runtime';
import type { Request as HttpRequest, Response as HttpResponse } from 'express';
import type { Problem } from '../../shared/contract.js';
import type { FeedFormat } from './feed-formats.js';
import type { Feeds } from './feeds.js';
import { isKnown } from './post-etag.js';
import { cacheControl } from './post-representations.js';

/** What the operations on feeds need of the application. */
export interface FeedsDeps {
  feeds: Feeds;
}

@Route()
@Tags('feeds')
@Produces('application/problem+json')
@Response<Problem, { 'X-Request-Id': string; 'WWW-Authenticate': string }>('401', 'No or wrong credentials')
@Response<Problem, { 'X-Request-Id': string; 'WWW-Authenticate': string }>('403', 'Insufficient scope')
@Response<Problem, { 'X-Request-Id': string; Allow: string }>('405', 'Another method')
@Response<Problem, { 'X-Request-Id': string; 'Retry-After': string }>(
  '429',
  'Too many failed logins, or reads without credentials',
)
@Response<Problem, { 'X-Request-Id': string }>('500', 'Server error')
@Response<Problem, { 'X-Request-Id': string; 'Retry-After': string }>('503', 'The database is unavailable')
export class FeedsController extends Controller {
  constructor(private readonly deps: FeedsDeps) {
    super();
  }

  /**
   * JSON Feed 1.1 with the 50 newest published posts.
   *
   * @summary Get the JSON feed
   * @param _ifNoneMatch Entity tags that the client has: 304 when one of them is current.
   */
  @Get('feed.json')
  @OperationId('jsonFeed')
  @Security('bearer', ['blogs:read'])
  @SuccessResponse<{
    'X-Request-Id': string;
    /** State of the feed. */
    ETag: string;
    'Cache-Control': string;
    Vary: string;
  }>('200', 'The feed', 'application/feed+json')
  @Response<void, { 'X-Request-Id': string; ETag: string }>('304', 'Not modified')
  async jsonFeed(
    @Request() request: HttpRequest,
    @Header('If-None-Match') _ifNoneMatch?: string,
  ): Promise<{ [key: string]: unknown }> {
    await this.send('json', request);
    // For the description alone: what was sent is not sent again.
    return {};
  }

  /**
   * Atom feed (RFC 4287) with the 50 newest published posts.
   *
   * @summary Get the Atom feed
   * @param _ifNoneMatch Entity tags that the client has: 304 when one of them is current.
   */
  @Get('feed.xml')
  @OperationId('atomFeed')
  @Security('bearer', ['blogs:read'])
  @SuccessResponse<{
    'X-Request-Id': string;
    /** State of the feed. */
    ETag: string;
    'Cache-Control': string;
    Vary: string;
  }>('200', 'The feed', 'application/atom+xml')
  @Response<void, { 'X-Request-Id': string; ETag: string }>('304', 'Not modified')
  async atomFeed(
    @Request() request: HttpRequest,
    @Header('If-None-Match') _ifNoneMatch?: string,
  ): Promise<string> {
    await this.send('atom', request);
    return '';
  }

  private async send(format: FeedFormat, request: HttpRequest): Promise<void> {
    const response = request.res as HttpResponse;
    const { etag, mediaType, body } = await this.deps.feeds.find(format);
    const known = isKnown(request.get('If-None-Match'), etag);
    const document = known ? undefined : await body();
    response.set({ ETag: etag, 'Cache-Control': cacheControl(request), Vary: 'Authorization' });
    if (document === undefined) response.status(304).end();
    else response.set('Content-Type', mediaType).send(document);
  }
}
