import { createRequire } from 'node:module';
import { join } from 'node:path';
import { type RequestHandler, Router } from 'express';
import { methodNotAllowed } from './problem.js';

/** What the page needs of Swagger UI. */
const assets = ['swagger-ui.css', 'swagger-ui-bundle.js', 'favicon-32x32.png'];

/** `/openapi.json`, and `/docs`: the same as a page, served from here alone. Both are public. */
export function docsRouter(document: object): Router {
  // Its main module would evaluate the whole page's code in this process: 40 MB for the name of a folder.
  const folder = (createRequire(import.meta.url)('swagger-ui-dist/absolute-path.js') as () => string)();
  const pages: Record<string, RequestHandler> = {
    '/openapi.json': (_request, response) => void response.json(document),
    '/docs': (_request, response) => void response.type('html').send(page),
    '/docs/start.js': (_request, response) => void response.type('js').send(start),
  };
  for (const name of assets) pages[`/docs/${name}`] = sendAsset(join(folder, name));
  const router = Router();
  for (const [path, handler] of Object.entries(pages)) {
    router.route(path).get(handler).all(methodNotAllowed('GET, HEAD'));
  }
  return router;
}

/** Sends the whole file whatever is asked of it: a range or a precondition that does not fit is no error of ours. */
function sendAsset(path: string): RequestHandler {
  return (request, response, next) => {
    delete request.headers['if-match'];
    delete request.headers['if-unmodified-since'];
    response.sendFile(path, { acceptRanges: false, maxAge: '1h' }, (error) => error && next(error));
  };
}

const page = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Quillgate API</title>
<link rel="icon" href="/docs/favicon-32x32.png">
<link rel="stylesheet" href="/docs/swagger-ui.css">
<main id="api"></main>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
`;

const start = `SwaggerUIBundle({ url: '/openapi.json', dom_id: '#api', deepLinking: true, validatorUrl: null });
`;
