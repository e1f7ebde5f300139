import { createRequire } from 'node:module';
import { Router, static as serveStatic } from 'express';
import type { Config } from '../shared/config.js';
import generated from './generated/openapi.json' with { type: 'json' };

/** `/openapi.json`, and `/docs`: the same as a page, served from here alone. Both are public. */
export function docsRouter(config: Pick<Config, 'CHAT_BASE_URL' | 'CHAT_BASE_URL_ALT'>): Router {
  const document = { ...generated, servers: serversOf(config) };
  // Its main module would evaluate the whole page's code in this process: 40 MB for the name of a folder.
  const assets = createRequire(import.meta.url)('swagger-ui-dist/absolute-path.js') as () => string;
  return Router()
    .get('/openapi.json', (_request, response) => void response.json(document))
    .get('/docs', (_request, response) => void response.type('html').send(page))
    .get('/docs/start.js', (_request, response) => void response.type('js').send(start))
    .use('/docs', serveStatic(assets(), { index: false, maxAge: '1h' }));
}

function serversOf(config: Pick<Config, 'CHAT_BASE_URL' | 'CHAT_BASE_URL_ALT'>): { url: string }[] {
  return [{ url: config.CHAT_BASE_URL }, { url: config.CHAT_BASE_URL_ALT }];
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
