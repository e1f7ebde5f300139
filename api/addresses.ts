import { type ErrorRequestHandler, type RequestHandler, Router } from 'express';
import type { Config } from '../shared/config/config.js';
import { operatorsBase } from './access/operators.js';
import type { ChatApi, Operation } from './chat-apis/chat-api.js';
import { apiRouter, exact, failuresBelow, type MountOptions, pathTest } from './chat-apis/mount.js';
import { refuseOtherApis } from './chat-apis/other-apis.js';
import generated from './generated/openapi.json' with { type: 'json' };
import { RegisterRoutes } from './generated/routes.js';
import { methodNotAllowed, sendFailuresBy } from './http/problem.js';

/** Where the operations are mounted. */
export type BaseUrls = Pick<Config, 'CHAT_BASE_URL' | 'CHAT_BASE_URL_ALT' | 'BLOG_BASE_URL'>;

/** The methods of each address, as `Allow` lists them. */
type Methods = Readonly<Record<string, string>>;

const allMethods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];

/** The allowed methods of each generated path that begins with one of `starts`. */
const methodsBelow = (...starts: readonly string[]): Methods =>
  Object.fromEntries(
    Object.entries(generated.paths)
      .filter(([path]) => starts.some((start) => path.startsWith(start)))
      .map(([path, operations]) => [
        path.replaceAll(/\{(\w+)\}/g, ':$1'),
        allMethods.filter((name) => name.replace('HEAD', 'GET').toLowerCase() in operations).join(', '),
      ]),
  );

const chatMethods = methodsBelow('/chat');
const postMethods = methodsBelow('/blogs');
const blogMethods = methodsBelow('/blogs', '/feed.');
/** A session of the console is valid there alone. */
const adminMethods = methodsBelow('/admin/');
const usageMethods = methodsBelow('/usage');

/** Chat, under both of its bases. */
export function chatOperations(urls: BaseUrls, before: readonly RequestHandler[]): Router {
  const router = Router(exact);
  for (const path of chatPaths(urls)) router.use(path, setBasePath(path), operations(chatMethods, before));
  return router;
}

export function blogOperations({ BLOG_BASE_URL }: BaseUrls, before: readonly RequestHandler[]): Router {
  const path = pathOf(BLOG_BASE_URL);
  return Router(exact).use(path, setBasePath(path), operations(blogMethods, before));
}

/** The operators' addresses; to be used before chat and blog, whose bases may be anything, and without CORS. */
export const adminOperations = (): Router => operations(adminMethods, []);

/** The usage of callers themselves; to be used before chat and blog, too. */
export const usageOperations = (before: readonly RequestHandler[]): Router =>
  operations(usageMethods, before);

/**
 * Chats and posts for operators, whose check stands in for theirs. Their failures are all problems. To be used before
 * chat and blog, without CORS.
 */
export function operatorsChatAndBlog(
  apis: readonly ChatApi[],
  options: MountOptions,
  countPosts: RequestHandler,
): Router {
  const begun = operationsOf(apis).filter(({ beginsChat }) => beginsChat);
  const routers = [
    operations(chatMethods, [options.countChats('/chat')]),
    apiRouter(begun, options, []),
    operations(postMethods, [countPosts]),
  ];
  return Router(exact).use(operatorsBase, setBasePath(operatorsBase), ...routers);
}

/** The APIs of others, at their own addresses; to be used before chat, which may have `/v1/chat/:id`. */
export function apiOperations(
  { apis, urls }: { apis: readonly ChatApi[]; urls: BaseUrls },
  options: MountOptions,
  before: readonly RequestHandler[],
): RequestHandler {
  const [main = '', ...alternatives] = chatPaths(urls);
  const mounted = apis.map(({ roots, operations, apiKeyHeader }) => {
    // Where a stored chat can be read: preferably beside them.
    const basePath = alternatives.find((path) => roots.includes(path)) ?? main;
    const keyed = { ...options, ...(apiKeyHeader && { apiKeyHeader }) };
    const router = apiRouter(operations, keyed, [setBasePath(basePath), ...before]);
    return { router, has: pathTest(operations) };
  });
  const bases = [...chatPaths(urls), pathOf(urls.BLOG_BASE_URL)].map((path) => path.replace(/\/$/, ''));
  const others = refuseOtherApis(operationsOf(apis), bases);
  return (request, response, next) => {
    const own = mounted.find(({ has }) => has(request.path));
    (own?.router ?? others)(request, response, next);
  };
}

const operationsOf = (apis: readonly ChatApi[]): Operation[] => apis.flatMap((api) => api.operations);

/** Sends failures as the API of their address does, but for those of chat and blog. To be used before all else. */
export function errorFormats(apis: readonly ChatApi[], urls: BaseUrls): RequestHandler {
  const ofOurs = Router(exact);
  for (const base of chatPaths(urls)) addAddresses(ofOurs, base, chatMethods);
  addAddresses(ofOurs, pathOf(urls.BLOG_BASE_URL), blogMethods);
  ofOurs.use(useProblemsForIds);
  const isOfApi = pathTest(operationsOf(apis));
  const failuresOf = failuresBelow(apis);
  return (request, response, next) => {
    const send = failuresOf(request.path);
    if (send === undefined) return next();
    sendFailuresBy(response, send);
    if (isOfApi(request.path)) return next();
    ofOurs(request, response, next);
  };
}

function addAddresses(router: Router, base: string, methods: Methods): void {
  for (const path of Object.keys(methods)) router.all(`${base.replace(/\/$/, '')}${path}`, useProblems);
}

const useProblems: RequestHandler = (_request, response, next) => {
  sendFailuresBy(response, undefined);
  next();
};

/** An id that cannot be decoded: only addresses of chat and blog have ids here. */
const useProblemsForIds: ErrorRequestHandler = (error, _request, response, next) => {
  sendFailuresBy(response, undefined);
  next(error);
};

const chatPaths = ({ CHAT_BASE_URL, CHAT_BASE_URL_ALT }: BaseUrls): string[] => [
  ...new Set([CHAT_BASE_URL, CHAT_BASE_URL_ALT].map(pathOf)),
];

const pathOf = (base: string): string => new URL(base).pathname;

/** The generated routes of these addresses only: chat and blog may have different base addresses. */
function operations(methods: Methods, before: readonly RequestHandler[]): Router {
  const router = Router(exact);
  const roots = new Set(Object.keys(methods).map(rootOf));
  router.use((request, _response, next) => next(roots.has(rootOf(request.path)) ? undefined : 'router'));
  for (const handler of before) router.use(handler);
  RegisterRoutes(router);
  for (const [path, allow] of Object.entries(methods)) router.all(path, methodNotAllowed(allow));
  return router;
}

/** The segment of a path that tells groups of operations apart. */
const rootOf = (path: string): string | undefined => /^\/[^/]*/.exec(path)?.[0];

/** For addresses in answers: the caller's own spelling of the base may differ. */
const setBasePath =
  (path: string): RequestHandler =>
  (_request, response, next) => {
    response.locals.basePath = path.replace(/\/$/, '');
    next();
  };
