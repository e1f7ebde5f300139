import type { Request } from 'express';

/** The parser takes quadratic time; browsers send a tenth of this. */
const maxAccept = 1000;

/**
 * What the request's `Accept` prefers (RFC 9110, 12.5.1) of the media types that are the keys; their order is the
 * server's own preference. Undefined when it accepts none of them, or is too long to be weighed.
 */
export function preferredOf<T>(request: Request, offered: Readonly<Record<string, T>>): T | undefined {
  if ((request.get('Accept')?.length ?? 0) > maxAccept) return undefined;
  const accepted = request.accepts(Object.keys(offered));
  return accepted === false ? undefined : offered[accepted];
}

// Both also with a charset, for clients that name one.
const jsonOrHtml = {
  'application/json': false,
  'application/json;charset=utf-8': false,
  'text/html': true,
  'text/html;charset=utf-8': true,
};

/** Whether the request asks for a page by name, rather than for JSON, which everybody else gets. */
export const prefersHtml = (request: Request): boolean =>
  /text\/html/i.test(request.get('Accept') ?? '') && (preferredOf(request, jsonOrHtml) ?? false);
