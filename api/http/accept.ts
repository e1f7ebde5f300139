import type { Request } from 'express';

/** The parser takes quadratic time; browsers send a tenth of this. */
const maxAccept = 1000;

/**
 * The media type, of the keys, that the request's `Accept` prefers (RFC 9110, 12.5.1); their order is the
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

/** Whether the request asks for a page by name; other requests get JSON. */
export const prefersHtml = (request: Request): boolean =>
  /text\/html/i.test(request.get('Accept') ?? '') && (preferredOf(request, jsonOrHtml) ?? false);
