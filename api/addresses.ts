import { type ErrorRequestHandler, type RequestHandler, Router } from 'express';
import type { Config } from '../shared/config/config.js';
import { operatorsBase } from './access/operators.js';
import { useOpenAiErrors } from './chat-apis/openai-chat/openai-error.js';
import { refuseOtherApis } from './chat-apis/openai-chat/other-apis.js';
import generated from './generated/openapi.json' with { type: 'json' };
import { RegisterRoutes } from './generated/routes.js';
import { methodNotAllowed, sendFailuresBy } from './http/problem.js';

/** Where the operations are mounted. */
export type BaseUrls = Pick<Config, 'CHAT_BASE_URL' | 'CHAT_BASE_URL_ALT' | 'BLOG_BASE_URL'>;

/** The methods of each address, as `Allow` lists them. */
type Methods = Readonly<Record<string, string>>;

const allMethods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];

/** Those of the controllers' operations whose path begins so, as the generated document lists them. */
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
const openAiMethods = methodsBelow('/v1/');
const completionMethods = methodsBelow('/v1/chat/');
/** A session of the console is valid there alone. */
const adminMethods = methodsBelow('/admin/');

/** OpenAI's clients add it to the address of any server. */
const openAiPath = '/v1';
const isOpenAiPath = (path: string): boolean => /^\/v1\/(chat\/completions$|models(\/|$))/.test(path);

/** A router does not inherit these settings from the application. */
const exact = { caseSensitive: true, strict: true };

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

/**
 * Chat, OpenAI's API and posts for operators, whose check stands in for theirs. Their failures are all problems. To be
 * used before chat and blog, without CORS.
 */
export function operatorsChatAndBlog(counts: Record<'chat' | 'openai' | 'blog', RequestHandler>): Router {
  const routers = [
    operations(chatMethods, [counts.chat]),
    operations(completionMethods, [counts.openai]),
    operations(postMethods, [counts.blog]),
  ];
  return Router(exact).use(operatorsBase, setBasePath(operatorsBase), ...routers);
}

/** OpenAI's API, always under `/v1`; to be used before chat, which may have `/v1/chat/:id`. */
export function openAiOperations(urls: BaseUrls, before: readonly RequestHandler[]): RequestHandler {
  const [main = '', ...alternatives] = chatPaths(urls);
  // Where a stored chat can be read: preferably beside this.
  const basePath = alternatives.find((path) => path === openAiPath) ?? main;
  const routes = operations(openAiMethods, [setBasePath(basePath), escapeSlashes, ...before]);
  const bases = [...chatPaths(urls), pathOf(urls.BLOG_BASE_URL)].map((path) => path.replace(/\/$/, ''));
  const others = refuseOtherApis(bases);
  return (request, response, next) => (isOpenAiPath(request.path) ? routes : others)(request, response, next);
}

/** Has failures below `/v1` answered as OpenAI's, but for chat and blog there. To be used before anything can fail. */
export function errorFormats(urls: BaseUrls): RequestHandler {
  const router = Router(exact);
  router.use(openAiPath, useOpenAiErrors);
  router.use((request, _response, next) => next(isOpenAiPath(request.path) ? 'router' : undefined));
  for (const base of chatPaths(urls)) addAddresses(router, base, chatMethods);
  addAddresses(router, pathOf(urls.BLOG_BASE_URL), blogMethods);
  router.use(useProblemsForIds);
  return (request, response, next) =>
    request.path.startsWith(openAiPath) ? router(request, response, next) : next();
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

/** The segments of a path that tell groups of operations apart. */
const rootOf = (path: string): string | undefined => /^\/(v1\/)?[^/]*/.exec(path)?.[0];

/** For addresses in answers: the caller's own spelling of the base may differ. */
const setBasePath =
  (path: string): RequestHandler =>
  (_request, response, next) => {
    response.locals.basePath = path.replace(/\/$/, '');
    next();
  };

/** The id of a model has slashes, which not every client escapes. The target may be a whole URL (RFC 9112, 3.2.2). */
const escapeSlashes: RequestHandler = (request, _response, next) => {
  const [all = '', start, id] = /^((?:https?:\/\/[^/?]*)?\/v1\/models\/)([^?]+)/i.exec(request.url) ?? [];
  if (id?.includes('/')) request.url = `${start}${id.replaceAll('/', '%2F')}${request.url.slice(all.length)}`;
  next();
};
