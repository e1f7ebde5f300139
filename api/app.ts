import express, { type Express, type Request, type RequestHandler } from 'express';
import helmet from 'helmet';
import { postInput, postPatch } from '../db/posts/post-rules.js';
import type { Config } from '../shared/config/config.js';
import { Failure } from '../shared/failures.js';
import type { ListedModel } from '../shared/fleet/fleet.js';
import type { ApiInstruments } from '../shared/metrics/instruments.js';
import { newOverridesSchema } from '../shared/protocol/settings.js';
import type { Log } from '../shared/runtime/log.js';
import type { Tracing } from '../shared/runtime/tracing.js';
import { type BytesInFlight, createStrangersBytes } from './access/bytes-in-flight.js';
import type { AuthenticatedRequest } from './access/caller.js';
import type { Authentication } from './access/login.js';
import { limitAnonymousReads } from './access/login-limiter.js';
import { forOperators } from './access/operators.js';
import {
  adminOperations,
  apiOperations,
  blogOperations,
  chatOperations,
  errorFormats,
  operatorsChatAndBlog,
  usageOperations,
} from './addresses.js';
import { auditQuery, tokenInput, tokenQuery, userInput, userQuery } from './admin/account-input.js';
import { EventsController, type EventsControllerDeps } from './admin/events.controller.js';
import { jobQuery } from './admin/pool-jobs.js';
import { PoolsController, type PoolsControllerDeps } from './admin/pool-settings.controller.js';
import { PreviewController, type PreviewControllerDeps, previewBody } from './admin/preview.controller.js';
import { SessionController, type SessionControllerDeps, signInBody } from './admin/session.controller.js';
import { TokensController } from './admin/tokens.controller.js';
import { type AccountsDeps, AuditController, UsersController } from './admin/users.controller.js';
import { blogOf, failuresAsPages, notFoundAsPage } from './blog/blog-layout.js';
import { BlogsController, type BlogsDeps } from './blog/blogs.controller.js';
import { FeedsController, type FeedsControllerDeps } from './blog/feeds.controller.js';
import { postQuery } from './blog/post-query.js';
import type { ChatService } from './chat/chat-service.js';
import type { StoredChats } from './chat/stored-chats.js';
import type { UserShares } from './chat/user-shares.js';
import { chatApis } from './chat-apis/chat-apis.js';
import { ChatController } from './chat-apis/quillgate/chat.controller.js';
import { checkConversation } from './chat-apis/quillgate/chat-request.js';
import { StoredChatsController } from './chat-apis/quillgate/stored-chats.controller.js';
import { allowOrigins, allowReaders } from './http/cors.js';
import { type BodyLimits, jsonBody } from './http/json-body.js';
import { LargeWork } from './http/large-work.js';
import { methodNotAllowed, notFound, problemHandler } from './http/problem.js';
import { logRequest, nameRequest, traceRequests } from './http/request-log.js';
import { daysQuery, requestQuery, usageQuery } from './ledger/ledger-query.js';
import { RequestsController, type RequestsControllerDeps } from './ledger/requests.controller.js';
import { SamplesController, type SamplesControllerDeps, sampleQuery } from './ledger/samples.controller.js';
import { OwnUsageController, UsageController } from './ledger/usage.controller.js';
import { docsRouter } from './openapi/docs.js';
import { createDocument, type DocumentFacts } from './openapi/openapi.js';
import { type HealthDeps, livez, metricsPage, readyz } from './operations/monitoring-routes.js';
import { createRequestCounts } from './operations/request-metrics.js';
import { consoleRouter } from './site/console-router.js';
import type { Sitemap } from './site/front-page.js';
import { type SiteDeps, sitemapRouter, siteRouter } from './site/site-router.js';

/** The parts of the HTTP application. */
export interface AppDeps extends HealthDeps, SiteDeps {
  config: Config;
  chatService: Pick<ChatService, 'createChat' | 'follow'>;
  shares: Pick<UserShares, 'admitReader'>;
  bytesInFlight: BytesInFlight;
  storedChats: StoredChats;
  models: () => readonly ListedModel[];
  blogs: BlogsDeps;
  feeds: FeedsControllerDeps;
  sitemap: Sitemap;
  admin: AdminDeps;
  authentication: Authentication;
  instruments: ApiInstruments;
  tracing?: Tracing | undefined;
  log: Log;
}

/** The dependencies of the controllers for operators. */
interface AdminDeps
  extends PoolsControllerDeps,
    SamplesControllerDeps,
    RequestsControllerDeps,
    EventsControllerDeps,
    SessionControllerDeps,
    AccountsDeps,
    PreviewControllerDeps {}

/** Builds the HTTP application: every address, and the order of the middleware. */
export function createApp(deps: AppDeps, apis = chatApis): Express {
  const { config, draining, instruments, log } = deps;
  const app = newApp();
  if (config.TRUSTED_PROXIES) app.set('trust proxy', config.TRUSTED_PROXIES);
  const body = bodyLimits(deps);
  addControllers(app, deps, body);

  app.use(nameRequest(draining));
  app.use(logRequest(log));
  app.use(errorFormats(apis, config));
  app.use(refuseAmbiguous);
  addHealthRoutes(app, deps);
  if (config.METRICS_PORT === undefined)
    addMetricsRoute(app, instruments, [forOperators(config.HOST, deps.authentication)]);
  // Behind what monitoring asks for every few seconds.
  if (deps.tracing) app.use(traceRequests(deps.tracing));
  const counts = createRequestCounts(instruments.metrics);
  const cors = config.CORS_ORIGINS ? [allowOrigins(config.CORS_ORIGINS)] : [];
  const readers = allowReaders(config.CORS_ORIGINS ?? [], deps.authentication);
  const limitReads = limitAnonymousReads({ perSecond: config.BLOG_READS_PER_SECOND });
  app.use(consoleRouter());
  app.use(adminOperations());
  app.use(usageOperations(cors));
  const mounting = { deps, body, countChats: counts.chats };
  app.use(operatorsChatAndBlog(apis, mounting, counts.blog));
  app.use(apiOperations({ apis, urls: config }, mounting, cors));
  app.use(chatOperations(config, [...cors, counts.chats('/chat')]));
  const blog = blogOf(config);
  app.use(blogOperations(config, [readers, counts.blog, failuresAsPages(blog), limitReads]));
  app.use(sitemapRouter(blog.basePath, deps.sitemap, [counts.blog, limitReads]));
  app.use(siteRouter(deps, apis));
  app.use(helmet(pageHeaders), docsRouter(describeApi(config, apis)));
  app.use(notFoundAsPage, notFound);
  app.use(problemHandler(log));
  return app;
}

/** The objects that the generated routes find in `app.locals`. */
function addControllers(app: Express, deps: AppDeps, body: BodyLimits): void {
  const { config, chatService, shares, storedChats, blogs, feeds, admin, authentication } = deps;
  const { MAX_MESSAGES: maxMessages, CHAT_MAX_WAIT_S: maxWaitS } = config;
  const parts = { chatService, shares, storedChats, maxWaitS, ...blogs, ...feeds, ...admin };
  const factories = new Map<unknown, () => unknown>();
  for (const Controller of controllers) factories.set(Controller, () => new Controller(parts));
  app.locals.controllers = factories;
  app.locals.authentication = authentication;
  app.locals.jsonBody = jsonBody(body);
  app.locals.shortJsonBody = jsonBody({
    maxBytes: 16_384,
    maxDepth: 8,
    maxValues: 200,
    isPlain: true,
    // These take no room from chats.
    holdBytes: createStrangersBytes({ maxBytes: 16_777_216, maxMs: 5000 }),
  });
  app.locals.checkConversation = checkConversation({ maxMessages });
}

const bodyLimits = ({ config, bytesInFlight }: AppDeps): BodyLimits => ({
  holdBytes: (request: Request) => bytesInFlight.open(request as AuthenticatedRequest),
  largeWork: new LargeWork(),
  maxBytes: config.MAX_BODY_BYTES,
  maxDepth: 32,
  maxValues: Math.max(minMaxValues, valuesPerMessage * config.MAX_MESSAGES),
});

const controllers = [
  ChatController,
  StoredChatsController,
  BlogsController,
  FeedsController,
  SamplesController,
  RequestsController,
  UsageController,
  OwnUsageController,
  PoolsController,
  EventsController,
  SessionController,
  UsersController,
  TokensController,
  AuditController,
  PreviewController,
];

export interface MetricsAppDeps extends HealthDeps {
  instruments: ApiInstruments;
  log: Log;
}

/** The application of `METRICS_PORT`. It logs no requests: a scrape every few seconds is no event. */
export function createMetricsApp(deps: MetricsAppDeps): Express {
  const app = newApp();
  app.use(nameRequest(deps.draining));
  addHealthRoutes(app, deps);
  addMetricsRoute(app, deps.instruments);
  app.use(notFound);
  app.use(problemHandler(deps.log));
  return app;
}

/** Addresses are exact, so that a proxy's rule for one spelling covers everything that is served there. */
const newApp = (): Express =>
  express().disable('x-powered-by').disable('etag').enable('case sensitive routing').enable('strict routing');

function addHealthRoutes(app: Express, deps: HealthDeps): void {
  app.route('/livez').get(livez).all(methodNotAllowed('GET, HEAD'));
  app.route('/readyz').get(readyz(deps)).all(methodNotAllowed('GET, HEAD'));
}

const addMetricsRoute = (app: Express, instruments: ApiInstruments, guards: RequestHandler[] = []): void =>
  void app
    .route('/metrics')
    .get(...guards, metricsPage(instruments))
    .all(methodNotAllowed('GET, HEAD'));

/** The OpenAPI document of this configuration, with the limits that posts and queries are checked for. */
export const describeApi = (facts: DocumentFacts, apis = chatApis): object =>
  createDocument(
    facts,
    {
      bodies: {
        PostInput: postInput,
        PostPatch: postPatch,
        PoolSettingsInput: newOverridesSchema,
        SignInInput: signInBody,
        UserInput: userInput,
        TokenInput: tokenInput,
        PreviewInput: previewBody,
      },
      queries: [
        postQuery,
        userQuery,
        tokenQuery,
        auditQuery,
        requestQuery,
        usageQuery,
        daysQuery,
        sampleQuery,
        jobQuery,
      ],
    },
    apis,
  );

/** Values that a JSON body may always have: parsing and checking this many takes at most 50 ms. */
const minMaxValues = 20_000;
/** The message, its role, its content, and one ignored field. */
const valuesPerMessage = 4;
/** The page must also work over plain HTTP; HTTPS is up to the proxy in front. */
const pageHeaders = {
  contentSecurityPolicy: { directives: { upgradeInsecureRequests: null } },
  strictTransportSecurity: false,
};

/**
 * Refuses requests that a proxy in front may have interpreted differently. An HTTP/1.1 request must name its host
 * exactly once (RFC 9112, 3.2); of two media types Node would take the first. Transfer codings other than `chunked` are
 * not supported: 501 (RFC 9112, 6.1).
 */
const refuseAmbiguous: RequestHandler = ({ headersDistinct, httpVersion }, _response, next) => {
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
