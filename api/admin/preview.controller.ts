import {
  Body,
  Controller,
  Middlewares,
  Post,
  Response,
  Route,
  Security,
  SuccessResponse,
} from '@tsoa/runtime';
import { z } from 'zod';
import type { Preview, PreviewInput, Problem } from '../../shared/contracts/contract.js';
import { text } from '../../shared/validation.js';
import { checkBody, readJsonBody } from '../http/json-body.js';

/** The dependencies of a preview. */
export interface PreviewControllerDeps {
  /** Safe HTML of a Markdown text; throws `rate_limited`. */
  preview: (content: string) => Promise<string>;
}

/** The body of a preview; as long as a post may be. */
export const previewBody = z.strictObject({ content: text({ max: 262_144 }) });

@Route('admin/preview')
@Security('admin')
@Response<Problem, { 'WWW-Authenticate': string }>(
  '403',
  'The token lacks the scope admin, or a page of another origin asks',
)
@Response<Problem, { 'Retry-After': string }>('429', 'Too many failed logins, or previews or bytes at once')
@Response<Problem, { 'Retry-After': string }>('503', 'The server is overloaded')
export class PreviewController extends Controller {
  constructor(private readonly deps: PreviewControllerDeps) {
    super();
  }

  /**
   * Renders the text as the blog would show it, within the same limits: one that is too costly to render is shown as
   * its source. Nothing is stored.
   *
   * @summary Render Markdown
   */
  @Post()
  @Middlewares(readJsonBody, checkBody(previewBody))
  @SuccessResponse('200', 'The HTML', 'application/json')
  async preview(@Body() body: PreviewInput): Promise<Preview> {
    return { html: await this.deps.preview(body.content) };
  }
}
