import type { Request } from 'express';
import { digestTag, sendDocument } from '../http/conditional.js';
import type { Page } from './page-layout.js';

/** The headers of every page; the hosts of images and links must not learn which post is read. */
export const pageHeaders = (csp: string): Record<string, string> => ({
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy': csp,
  'Referrer-Policy': 'no-referrer',
});

/** Answers with the page, or with 304 when the client's copy is the same. `headers` say who may keep it. */
export const sendPage = (
  request: Request,
  { html, csp }: Page,
  headers: Readonly<Record<string, string>>,
): Promise<void> =>
  sendDocument(request, {
    validators: { ETag: digestTag(csp + html) },
    headers,
    content: () => ({ body: html, headers: pageHeaders(csp) }),
  });
