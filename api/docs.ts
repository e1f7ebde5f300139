import { createRequire } from 'node:module';
import { join } from 'node:path';
import { type RequestHandler, Router } from 'express';
import type { Config } from '../shared/config.js';
import generated from './generated/openapi.json' with { type: 'json' };
import { methodNotAllowed } from './problem.js';

type Bases = Pick<Config, 'CHAT_BASE_URL' | 'CHAT_BASE_URL_ALT'>;

/** What the page needs of Swagger UI. */
const assets = ['swagger-ui.css', 'swagger-ui-bundle.js', 'favicon-32x32.png'];

/** `/openapi.json`, and `/docs`: the same as a page, served from here alone. Both are public. */
export function docsRouter(bases: Bases): Router {
  const document = describe(bases);
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

/** Headers that an answer may lack; the generator takes every header for one that is always sent. */
const notAlwaysSent = ['X-LLM-Input-Tokens', 'X-LLM-Output-Tokens', 'Retry-After'];

function describe(bases: Bases): object {
  const document = structuredClone(generated);
  for (const { headers } of Object.values(document.paths['/chat'].post.responses)) {
    for (const [name, header] of Object.entries<{ required: boolean }>(headers)) {
      header.required = !notAlwaysSent.includes(name);
    }
  }
  return { ...document, servers: [{ url: bases.CHAT_BASE_URL }, { url: bases.CHAT_BASE_URL_ALT }] };
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
