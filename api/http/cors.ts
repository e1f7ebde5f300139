import corsPolicy from 'cors';
import type { RequestHandler } from 'express';

/** How long a browser may remember what a preflight said, in seconds; browsers take two hours at most. */
const maxAge = 7200;

/** A script may read all headers of an answer: `*` means that for requests without the browser's own credentials. */
const common = { exposedHeaders: '*', maxAge };

/**
 * Lets the scripts of pages of these origins (`*` for all) send requests
 * (https://fetch.spec.whatwg.org/#http-cors-protocol), and answers their preflights. Cookies and other credentials
 * that a browser adds by itself are not allowed, so a page may send every header that its preflight asks for: clients
 * add some of their own, and Firefox and Safari ask for `User-Agent`, too.
 */
export function allowOrigins(
  origins: readonly string[],
  methods: readonly string[] = ['GET', 'POST', 'DELETE'],
): RequestHandler {
  const origin = origins.includes('*') ? '*' : [...origins];
  return corsPolicy({ ...common, origin, methods: [...methods] });
}

/** As `allowOrigins`, for the blog. Where reading is public, all other pages may read as well, without a token. */
export function allowReaders(
  origins: readonly string[],
  { publicReads }: { publicReads: boolean },
): RequestHandler {
  const listed = allowOrigins(origins, ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']);
  const readMethods = ['GET', 'HEAD'];
  const reads = { ...common, methods: readMethods, allowedHeaders: 'If-None-Match' };
  const anybody = corsPolicy({ ...reads, origin: '*' });
  const isListed = (origin = '') => origins.includes('*') || origins.includes(origin);
  return (request, response, next) => {
    const isPreflight = request.method === 'OPTIONS';
    const method = isPreflight ? request.get('Access-Control-Request-Method') : request.method;
    const isRead = readMethods.includes(method ?? '');
    if (publicReads && isRead && !(isPreflight && isListed(request.headers.origin)))
      anybody(request, response, next);
    else if (origins.length > 0) listed(request, response, next);
    else next();
  };
}
