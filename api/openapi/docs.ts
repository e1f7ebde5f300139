import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { extname, join } from 'node:path';
import type { RequestHandler, Router } from 'express';
import { documentsRouter, sendFile } from '../http/conditional.js';

/** The files of Swagger UI that the page needs. */
const assets = ['swagger-ui.css', 'swagger-ui-bundle.js', 'favicon-32x32.png'];

/** Serves `/openapi.json` and `/docs`, the same as a page without external resources. Both are public. */
export function docsRouter(document: object): Router {
  // The package's main module would evaluate the code of the whole page in this process: 40 MB for a folder name.
  const folder = (createRequire(import.meta.url)('swagger-ui-dist/absolute-path.js') as () => string)();
  const pages: Record<string, RequestHandler> = {
    '/openapi.json': sendText('application/json', JSON.stringify(document)),
    '/docs': sendText('text/html', page),
    '/docs/start.js': sendText('text/javascript', start),
    '/docs/scheme.js': sendText('text/javascript', scheme),
    '/docs/contrast.css': sendText('text/css', contrast),
  };
  // From memory: an open file would stay open when the connection ends before the answer's turn.
  for (const name of assets)
    pages[`/docs/${name}`] = sendFile(readFileSync(join(folder, name)), {
      'Content-Type': extname(name),
      'Cache-Control': 'public, max-age=3600',
    });
  return documentsRouter(pages);
}

const sendText = (type: string, text: string): RequestHandler =>
  sendFile(Buffer.from(text), { 'Content-Type': type });

const page = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Quillgate API</title>
<link rel="icon" href="/docs/favicon-32x32.png">
<link rel="stylesheet" href="/docs/swagger-ui.css">
<link rel="stylesheet" href="/docs/contrast.css">
<script src="/docs/scheme.js"></script>
<main id="api"></main>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
`;

/** Swagger UI has a dark mode, and leaves it to the page to choose it. */
const scheme = `const dark = matchMedia('(prefers-color-scheme: dark)');
const follow = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
dark.addEventListener('change', follow);
follow();
`;

/** Colours of Swagger UI that are hard to read (WCAG 2.2, 1.4.3), as axe finds them in each mode. */
const contrast = `.swagger-ui .opblock .opblock-summary-method { color: #fff; text-shadow: none; }
.swagger-ui .opblock.opblock-get .opblock-summary-method { background: #0b57d0; }
.swagger-ui .opblock.opblock-post .opblock-summary-method { background: #126b35; }
.swagger-ui .opblock.opblock-put .opblock-summary-method { background: #8a4b00; }
.swagger-ui .opblock.opblock-patch .opblock-summary-method { background: #0b6158; }
.swagger-ui .opblock.opblock-delete .opblock-summary-method { background: #b3261e; }
.swagger-ui .info .title small, .swagger-ui .info .title small.version-stamp { background: #4a4a52; }
.swagger-ui .info .title small pre { color: #fff; }
html:not(.dark-mode) .swagger-ui .info a, html:not(.dark-mode) .swagger-ui .info .link .url { color: #0b57d0; }
html:not(.dark-mode) .swagger-ui .btn.authorize, html:not(.dark-mode) .swagger-ui .btn.authorize span { color: #126b35; }
html.dark-mode .swagger-ui .info a, html.dark-mode .swagger-ui .info .link .url { color: #8ab4f8; }
html.dark-mode .swagger-ui .btn.authorize, html.dark-mode .swagger-ui .btn.authorize span { color: #7bd59a; }
`;

/** Swagger UI mistakes optional credentials for authorized ones and would show a closed lock on public operations. */
const start = `SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#api',
  deepLinking: true,
  validatorUrl: null,
  plugins: [
    () => ({
      statePlugins: {
        auth: {
          wrapSelectors: {
            isAuthorized: (original) => (_state, asked) => original(asked && asked.filter((schemes) => schemes.size > 0)),
          },
        },
      },
    }),
  ],
});
`;

/** The parts of an OpenAPI 3.0 document that are completed here. */
export interface Document {
  info: Info;
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema> };
}

export interface Info {
  version: string;
  description: string;
}

export interface Operation {
  operationId: string;
  summary?: string;
  description?: string;
  security?: Record<string, string[]>[];
  parameters?: { name: string; in: string; description?: string; required?: boolean; schema: Schema }[];
  requestBody?: { required?: boolean; content?: Record<string, unknown> };
  responses: Record<string, Answer>;
}

export interface Answer {
  description?: string;
  headers?: Record<string, { required?: boolean; description?: string; schema?: unknown }>;
  content?: Record<string, { schema: unknown }>;
}

export interface Schema {
  description?: string;
  type?: string;
  format?: string;
  required?: string[];
  nullable?: boolean;
  enum?: unknown[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  items?: Schema;
  properties?: Record<string, Schema>;
  $ref?: string;
  allOf?: { $ref: string }[];
  additionalProperties?: boolean;
  example?: unknown;
}
