import { randomUUID } from 'node:crypto';
import express, { type Express, type RequestHandler, Router } from 'express';
import helmet from 'helmet';
import type { Database } from '../db/database/client.js';
import type { Config } from '../shared/config/config.js';
import { Failure } from '../shared/failures.js';
import type { ApiInstruments } from '../shared/metrics/instruments.js';
import type { QueueStore } from '../shared/queue/queue-store.js';
import type { Log } from '../shared/runtime/log.js';
import { limitAnonymousReads } from './access/anonymous-reads.js';
import type { Authentication } from './access/authentication.js';
import { BlogsController, type BlogsDeps } from './blog/blogs.controller.js';
import { FeedsController, type FeedsDeps } from './blog/feeds.controller.js';
import { ChatController } from './chat/chat.controller.js';
import { checkConversation } from './chat/chat-request.js';
import type { ChatService } from './chat/chat-service.js';
import { StoredChatsController } from './chat/stored-chats.controller.js';
import type { StoredChats } from './chat/stored-chats.js';
import { UserLimits } from './chat/user-limits.js';
import { RegisterRoutes } from './generated/routes.js';
import { Controllers } from './http/controllers.js';
import { jsonBody } from './http/json-body.js';
import { elapsedMsOf, failureCodeOf, methodNotAllowed, notFound, problemHandler } from './http/problem.js';
import { docsRouter } from './openapi/docs.js';
import { describeApi } from './openapi/openapi.js';
import { livez, readyz } from './operations/health-routes.js';
import { metricsPage } from './operations/metrics-route.js';
import { createRequestCounts } from './operations/request-metrics.js';

export interface AppDeps {
  config: Config;
  chatService: ChatService;
  storedChats: StoredChats;
  blogs: BlogsDeps;
  feeds: FeedsDeps;
  authentication: Authentication;
  store: QueueStore;
  database: Pick<Database, 'check'>;
  /** Whether the channels to the workers are open. */
  linked: () => boolean;
  /** Jobs that all live pools can run at once; undefined while none is known. */
  places: () => number | undefined;
  /** Whether the process is about to stop. */
  draining: () => boolean;
  instruments: ApiInstruments;
  log: Log;
}

/** Builds the HTTP application: every address, and the order in which a request is looked at. */
export function createApp(deps: AppDeps): Express {
  const { config, chatService, storedChats, blogs, feeds, authentication, draining, instruments, log } = deps;
  const app = express().disable('x-powered-by').disable('etag');
  // A rule of a proxy for one spelling of an address has to hold for all that is served there.
  app.enable('case sensitive routing').enable('strict routing');
  if (config.TRUSTED_PROXIES) app.set('trust proxy', config.TRUSTED_PROXIES);
  const limits = new UserLimits({
    maxInFlight: () => config.CHAT_USER_MAX_IN_FLIGHT ?? maxInFlightOf(deps.places()),
    maxPerWindow: config.CHAT_USER_MAX_PER_MINUTE,
    maxBytes: config.CHAT_USER_MAX_QUEUED_BYTES,
    maxBytesInAll: config.CHAT_MAX_QUEUED_BYTES,
  });
  const chat = { chatService, limits, maxWaitS: config.CHAT_MAX_WAIT_S };
  app.locals.controllers = new Controllers()
    .add(ChatController, () => new ChatController(chat))
    .add(StoredChatsController, () => new StoredChatsController({ storedChats }))
    .add(BlogsController, () => new BlogsController(blogs))
    .add(FeedsController, () => new FeedsController(feeds));
  app.locals.authentication = authentication;
  app.locals.jsonBody = jsonBody({
    maxBytes: config.MAX_BODY_BYTES,
    maxDepth: config.MAX_JSON_DEPTH,
    maxValues: Math.max(minMaxValues, valuesPerMessage * config.MAX_MESSAGES),
  });
  app.locals.checkConversation = checkConversation({ maxMessages: config.MAX_MESSAGES });

  app.use(nameRequest(draining));
  app.use(logRequest(log));
  app.use(requireOneReading);
  app.route('/livez').get(livez).all(methodNotAllowed('GET, HEAD'));
  app.route('/readyz').get(readyz(deps)).all(methodNotAllowed('GET, HEAD'));
  if (config.METRICS_PORT === undefined)
    app.route('/metrics').get(metricsPage(instruments)).all(methodNotAllowed('GET, HEAD'));
  const counts = createRequestCounts(instruments.metrics);
  for (const path of new Set([config.CHAT_BASE_URL, config.CHAT_BASE_URL_ALT].map(pathOf)))
    app.use(path, tellBasePath(path), operations(chatMethods, counts.chat));
  const limitReads = limitAnonymousReads({ perSecond: config.BLOG_READS_PER_SECOND });
  app.use(pathOf(config.BLOG_BASE_URL), operations(blogMethods, counts.blog, limitReads));
  app.use(helmet(pageHeaders), docsRouter(describeApi(config)));
  app.use(notFound);
  app.use(problemHandler(log));
  return app;
}

/** Values that a JSON body may always have: to parse and check so many takes 50 ms at most. */
const minMaxValues = 20_000;
/** The message, its role and its content, and room for a field that is ignored. */
const valuesPerMessage = 4;
/** More than this many times what the pools can run at once is of no use to anybody. */
const maxInFlightPerPlace = 10;
/** What a user may have in flight however small the pools are. */
const minMaxInFlight = 100;

const maxInFlightOf = (places: number | undefined): number | undefined =>
  places === undefined ? undefined : Math.max(minMaxInFlight, places * maxInFlightPerPlace);

/** The page must also work over plain HTTP, where a proxy in front does the rest. */
const pageHeaders = {
  contentSecurityPolicy: { directives: { upgradeInsecureRequests: null } },
  strictTransportSecurity: false,
};

/** The methods of every address, as `Allow` names them. */
const chatMethods = { '/chat': 'POST', '/chat/:id': 'GET, HEAD, DELETE' };
const blogMethods = {
  '/blogs': 'GET, HEAD, POST',
  '/blogs/:id': 'GET, HEAD, PUT, PATCH, DELETE',
  '/feed.json': 'GET, HEAD',
  '/feed.xml': 'GET, HEAD',
};

/** Every router has to say so for itself. */
const exact = { caseSensitive: true, strict: true };

/** The generated routes of these addresses alone: the bases of the two interfaces need not be the same. */
function operations(methods: Record<string, string>, ...before: RequestHandler[]): Router {
  const router = Router(exact);
  const roots = new Set(Object.keys(methods).map((path) => path.split('/')[1]));
  router.use((request, _response, next) =>
    next(roots.has(request.path.split('/')[1]) ? undefined : 'router'),
  );
  router.use(...before);
  RegisterRoutes(router);
  for (const [path, allow] of Object.entries(methods)) router.all(path, methodNotAllowed(allow));
  return router;
}

/** For addresses in answers: what a caller has written of the base may be spelled otherwise. */
const tellBasePath =
  (path: string): RequestHandler =>
  (_request, response, next) => {
    response.locals.basePath = path.replace(/\/$/, '');
    next();
  };

const pathOf = (base: string): string => new URL(base).pathname;

/** Every answer, good or bad, carries the id that the logs and the job go by. A caller's own id is not taken over. */
export function nameRequest(draining: () => boolean): RequestHandler {
  return (_request, response, next) => {
    response.locals.startedAt = performance.now();
    response.set('X-Request-Id', randomUUID());
    response.set('X-Content-Type-Options', 'nosniff');
    // Chats, and whatever else does not say how long it may be kept.
    response.set('Cache-Control', 'no-store');
    if (draining()) response.set('Connection', 'close');
    next();
  };
}

/**
 * Refuses what a proxy in front may have read otherwise. A request of HTTP/1.1 has to say once which host it is for (RFC 9112,
 * 3.2); of two media types Node would take the first. Codings besides `chunked` are not undone here: 501 (RFC 9112, 6.1).
 */
const requireOneReading: RequestHandler = ({ headersDistinct, httpVersion }, _response, next) => {
  const { host = [], 'content-type': mediaTypes = [], 'transfer-encoding': codings = [] } = headersDistinct;
  if (host.length > 1 || mediaTypes.length > 1 || (host.length === 0 && httpVersion === '1.1'))
    throw new Failure('invalid_request');
  if (codings.length > 0 && codings.join().trim().toLowerCase() !== 'chunked')
    throw new Failure('invalid_request', unknownCoding);
  next();
};

const unknownCoding = {
  status: 501,
  detail: 'Transfer codings besides chunked are not supported.',
  headers: { Connection: 'close' },
};

function logRequest(log: Log): RequestHandler {
  return (request, response, next) => {
    response.once('close', () => {
      log.info(
        {
          requestId: response.getHeader('X-Request-Id'),
          method: request.method,
          // The route's own pattern: an address can hold what a caller wrote.
          route: request.route?.path ?? null,
          status: response.writableFinished ? response.statusCode : 'client closed',
          // Absent when nothing failed.
          code: failureCodeOf(response),
          provider: response.getHeader('X-LLM-Provider'),
          ms: Math.round(elapsedMsOf(response)),
        },
        'request',
      );
    });
    next();
  };
}
