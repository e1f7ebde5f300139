import { createHash } from 'node:crypto';
import type { Request, Response } from 'express';
import type { Page } from './page-layout.js';
import { isNotModified } from './post-etag.js';

/** What every page is sent with; the hosts of images and links must not learn what somebody reads. */
export const pageHeaders = (csp: string): Record<string, string> => ({
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy': csp,
  'Referrer-Policy': 'no-referrer',
});

/** Answers with the page, or with 304 when the client's copy is the same. `headers` say who may keep it. */
export function sendPage(
  request: Request,
  { html, csp }: Page,
  headers: Readonly<Record<string, string>>,
): void {
  const response = request.res as Response;
  const etag = `"${createHash('sha256').update(csp).update(html).digest('base64url').slice(0, 22)}"`;
  response.set({ ...headers, ETag: etag });
  if (isNotModified(request.get('If-None-Match'), etag)) response.status(304).end();
  else response.set(pageHeaders(csp)).send(html);
}
