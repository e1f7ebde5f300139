import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname } from 'node:path';
import { type RequestHandler, Router } from 'express';
import helmet from 'helmet';
import { sendFile } from '../http/conditional.js';
import { methodNotAllowed } from '../http/problem.js';

/** The console as dev/build.mjs has built it, beside the programs. */
const built = new URL('../../console/', import.meta.url);

/** Serves the operators' console (decision 39) from memory, to all. Throws when the page was not built. */
export function consoleRouter(folder: URL = built): Router {
  const router = Router({ caseSensitive: true, strict: true });
  const serve = (path: string, handler: RequestHandler) =>
    router.route(path).all(security).get(handler).all(methodNotAllowed('GET, HEAD'));
  const page = readFileSync(new URL('index.html', folder));
  serve('/admin', sendFile(page, { 'Content-Type': types['.html'], 'Cache-Control': 'no-cache' }));
  for (const [name, bytes] of readAssets(new URL('assets/', folder)))
    serve(
      `/admin/assets/${name}`,
      sendFile(bytes, { 'Content-Type': typeOf(name), 'Cache-Control': forever }),
    );
  return router;
}

const types = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
} as const;

const typeOf = (name: string): string =>
  Object.entries(types).find(([end]) => end === extname(name))?.[1] ?? '';

/** The name of an asset changes with what is in it. */
const forever = 'public, max-age=31536000, immutable';

/** The files of the console; none where the API runs from its sources, as in a test. */
function readAssets(folder: URL): [name: string, bytes: Buffer][] {
  const names = existsSync(folder) ? readdirSync(folder) : [];
  return names.map((name) => [name, readFileSync(new URL(name, folder))]);
}

/** Scripts, styles and connections of this server, and nothing inline; no other page may frame this one. */
const security = helmet({
  contentSecurityPolicy: {
    useDefaults: false,
    directives: {
      defaultSrc: ["'none'"],
      scriptSrc: ["'self'"],
      styleSrc: ["'self'"],
      imgSrc: ["'self'"],
      connectSrc: ["'self'"],
      baseUri: ["'none'"],
      formAction: ["'self'"],
      frameAncestors: ["'none'"],
    },
  },
  // HTTPS is up to the proxy in front.
  strictTransportSecurity: false,
  xFrameOptions: { action: 'deny' },
});
