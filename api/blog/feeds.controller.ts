import { Controller, Get, Header, Request, Response, Route, Security, SuccessResponse } from '@tsoa/runtime';
import type { Request as HttpRequest } from 'express';
import type { Problem } from '../../shared/contracts/contract.js';
import { sendDocument } from '../http/conditional.js';
import type { FeedFormat } from './feed-formats.js';
import type { Feeds } from './feeds.js';
import { cacheHeaders } from './post-representations.js';

/** The dependencies of the operations on feeds. */
export interface FeedsControllerDeps {
  feeds: Feeds;
}

@Route()
@Response<Problem, { 'Retry-After': string }>('429', 'Too many failed logins, or too many anonymous reads')
@Response<Problem, { 'Retry-After': string }>('503', 'The database is unavailable')
export class FeedsController extends Controller {
  constructor(private readonly deps: FeedsControllerDeps) {
    super();
  }

  /**
   * JSON Feed 1.1 with the 50 newest published posts.
   *
   * @summary Get the JSON feed
   * @param _ifNoneMatch Entity tags of the client's copies: 304 when one of them is current.
   */
  @Get('feed.json')
  @Security('bearer', ['blogs:read'])
  @SuccessResponse<{
    /** State of the feed. */
    ETag: string;
    'Cache-Control': string;
    Vary: string;
  }>('200', 'The feed', 'application/feed+json')
  @Response<void, { ETag: string }>('304', 'Not modified')
  async jsonFeed(
    @Request() request: HttpRequest,
    @Header('If-None-Match') _ifNoneMatch?: string,
  ): Promise<{ [key: string]: unknown }> {
    await this.send('json', request);
    // For the document only: the answer has already been sent.
    return {};
  }

  /**
   * Atom feed (RFC 4287) with the 50 newest published posts.
   *
   * @summary Get the Atom feed
   * @param _ifNoneMatch Entity tags of the client's copies: 304 when one of them is current.
   */
  @Get('feed.xml')
  @Security('bearer', ['blogs:read'])
  @SuccessResponse<{
    /** State of the feed. */
    ETag: string;
    'Cache-Control': string;
    Vary: string;
  }>('200', 'The feed', 'application/atom+xml')
  @Response<void, { ETag: string }>('304', 'Not modified')
  async atomFeed(
    @Request() request: HttpRequest,
    @Header('If-None-Match') _ifNoneMatch?: string,
  ): Promise<string> {
    await this.send('atom', request);
    return '';
  }

  private async send(format: FeedFormat, request: HttpRequest): Promise<void> {
    const { etag, mediaType, body } = await this.deps.feeds.find(format);
    await sendDocument(request, {
      validators: { ETag: etag },
      headers: cacheHeaders(request),
      content: async () => ({ body: await body(), headers: { 'Content-Type': mediaType } }),
    });
  }
}
