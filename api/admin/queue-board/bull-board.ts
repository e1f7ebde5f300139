import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createBullBoard } from '@bull-board/api';
import type {
  AppControllerRoute,
  AppViewRoute,
  BullBoardQueues,
  IServerAdapter,
  UIConfig,
} from '@bull-board/api/dist/types.js';
import { type Request, type RequestHandler, Router } from 'express';
import { providerIds } from '../../../shared/contract.js';
import { Failure } from '../../../shared/failures.js';
import { type BoardQueues, maxJobs, TextlessQueue } from './textless-queue.js';

/** Seconds between two looks of a page. */
const pollingSeconds = 5;

/** Bull Board as a router for the path and the addresses below it. */
export function openBullBoard(queues: BoardQueues, path: string): Router {
  const folder = findPages();
  const server = new BoardServer(path, folder);
  createBullBoard({
    queues: providerIds.map((id) => new TextlessQueue(id, queues)),
    serverAdapter: server,
    options: { uiBasePath: folder, uiConfig },
  });
  return server.router;
}

const uiConfig: UIConfig = {
  boardTitle: 'Queues of Quillgate',
  miscLinks: [{ text: 'Console', url: '/admin' }],
  pollingInterval: { showSetting: false, forceInterval: pollingSeconds },
  // Lists the connections of the whole Redis for each queue; the console knows the workers.
  showWorkers: false,
  showMetrics: false,
  hideRedisDetails: true,
  hideDocsLink: true,
};

/** Beside the programs, as dev/build.mjs has copied them, or where the sources run, as they came. */
function findPages(): string {
  const copied = fileURLToPath(new URL('../../../queue-board/', import.meta.url));
  if (existsSync(copied)) return copied;
  return join(dirname(createRequire(import.meta.url).resolve('@bull-board/ui/package.json')), 'dist');
}

/**
 * What Bull Board calls a server adapter. Its own, `@bull-board/express`, would also serve the addresses that change something, and a
 * page with fonts of another host.
 */
class BoardServer implements IServerAdapter {
  readonly router = Router({ caseSensitive: true, strict: true });
  readonly #path: string;
  readonly #folder: string;
  #queues: BullBoardQueues = new Map();
  #config: UIConfig = {};

  constructor(path: string, folder: string) {
    this.#path = path;
    this.#folder = folder;
  }

  setQueues(queues: BullBoardQueues): this {
    this.#queues = queues;
    return this;
  }

  setUIConfig(config: UIConfig): this {
    this.#config = config;
    return this;
  }

  /** The page is made of what its template names. */
  setViewsPath(): this {
    return this;
  }

  /** From memory: what is there when the board is opened, and nothing else. */
  setStaticPath(): this {
    const folder = join(this.#folder, 'static');
    for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true }))
      if (entry.isFile()) this.#serveFile(join(entry.parentPath, entry.name));
    return this;
  }

  #serveFile(file: string): void {
    const address = `${this.#path}/${file.slice(this.#folder.length).replace(/^\//, '')}`;
    let sent: { bytes: Buffer; etag: string } | undefined;
    this.router.get(address, (_request, response) => {
      const bytes = sent?.bytes ?? readFileSync(file);
      sent ??= { bytes, etag: etagOf(bytes) };
      response.set({ ETag: sent.etag, 'Cache-Control': 'private, max-age=3600' });
      response.type(extname(file)).send(bytes);
    });
  }

  setEntryRoute({ route, handler }: AppViewRoute): this {
    const { params } = handler({ basePath: this.#path, uiConfig: this.#config });
    const page = pageOf(readFileSync(join(this.#folder, 'index.ejs'), 'utf8'), params);
    const paths = [route].flat().map((path) => `${this.#path}${path}`);
    this.router.get([this.#path, ...paths], (_request, response) => void response.type('html').send(page));
    return this;
  }

  /** A failure is answered as everywhere else. */
  setErrorHandler(): this {
    return this;
  }

  /** Those that read; the others have no address here. */
  setApiRoutes(routes: AppControllerRoute[]): this {
    for (const { method, route, handler } of routes) {
      if (method !== 'get') continue;
      const paths = [route].flat().map((path) => `${this.#path}${path}`);
      this.router.get(paths, this.#answer(handler));
    }
    return this;
  }

  #answer(handler: AppControllerRoute['handler']): RequestHandler {
    return async (request, response) => {
      const { params } = request;
      const asked = { queues: this.#queues, uiConfig: this.#config, params, body: {}, headers: {} };
      const answer = await Promise.resolve(handler({ ...asked, query: boundedQuery(request) })).catch(
        (cause: unknown) => {
          throw cause instanceof Failure ? cause : new Failure('queue_unavailable', { cause });
        },
      );
      response.status(answer.status ?? 200).json(answer.body);
    };
  }
}

/** A page has as many jobs as `TextlessQueue` gives. Bull Board decodes the name of the queue once more, and fails when it cannot. */
function boundedQuery({ query }: Request): Record<string, string> {
  const texts = Object.entries(query).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string',
  );
  const { activeQueue = '', ...others } = Object.fromEntries(texts);
  return { ...others, activeQueue: encodeURIComponent(activeQueue), jobsPerPage: String(maxJobs) };
}

/** The page of the template without its fonts, which are another host's, and without its inline styles. */
export function pageOf(template: string, { basePath, uiConfig }: Record<string, string>): string {
  const own = [...template.matchAll(/<(?:link href|script defer src)="static\/[^>]*>(?:<\/script>)?/g)];
  return `<!doctype html>
<html lang="en" dir="ltr">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<base href="${basePath}">
<title>Queues of Quillgate</title>
<link rel="icon" href="static/images/logo.svg" id="fav-logo">
</head>
<body class="preload">
<script id="__UI_CONFIG__" type="application/json">${uiConfig}</script>
<div id="root"></div>
${own.map(([tag]) => tag).join('\n')}
</body>
</html>
`;
}

const etagOf = (bytes: Buffer): string =>
  `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 16)}"`;
