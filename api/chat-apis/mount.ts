import { type RequestHandler, Router } from 'express';
import { expressAuthentication } from '../access/authentication.js';
import type { AuthenticatedRequest } from '../access/caller.js';
import { type BodyLimits, jsonBody } from '../http/json-body.js';
import { methodNotAllowed, sendFailuresBy } from '../http/problem.js';
import type { ChatApi, ChatApiDeps, Operation } from './chat-api.js';

/** Everything that mounted operations need besides the operations. */
export interface MountOptions {
  readonly deps: ChatApiDeps;
  /** The limits of a body that an operation does not set itself. */
  readonly body: BodyLimits;
  /** Counts the requests for chats at this path. */
  readonly countChats: (path: string) => RequestHandler;
}

/** A router does not inherit these settings from the application. */
const exact = { caseSensitive: true, strict: true };

/** The routes of these operations, behind `before`; another method at one of their addresses is refused. */
export function apiRouter(
  operations: readonly Operation[],
  { deps, body, countChats }: MountOptions,
  before: readonly RequestHandler[],
): Router {
  const router = Router(exact);
  const byPath = Map.groupBy(operations, ({ path }) => path);
  for (const [path, atPath] of byPath) {
    const counts = atPath.some(({ beginsChat }) => beginsChat) ? [countChats(path)] : [];
    for (const handler of [...before, ...counts]) router.all(path, handler);
    for (const operation of atPath) {
      const limits = operation.body?.(deps.config);
      const readBody = limits ? [jsonBody({ ...body, ...limits })] : [];
      router[operation.method](path, authenticate, ...readBody, (request, response) =>
        operation.handle(request as AuthenticatedRequest, response, deps),
      );
    }
    router.all(path, methodNotAllowed(allowedAt(atPath)));
  }
  return router;
}

/** Authenticates like the generated routes of other operations. */
const authenticate: RequestHandler = async (request, _response, next) => {
  Object.assign(request, { user: await expressAuthentication(request, 'chat') });
  next();
};

/** The value of `Allow`. */
const allowedAt = (operations: readonly Operation[]): string =>
  operations
    .flatMap(({ method }) => (method === 'get' ? ['GET', 'HEAD'] : [method.toUpperCase()]))
    .join(', ');

/** Sets that failures below the roots of an API are sent in its format; the longest root counts. */
export function apiFailures(apis: readonly ChatApi[]): Router {
  const router = Router(exact);
  const roots = apis.flatMap(({ roots, sendFailure }) => roots.map((root) => ({ root, sendFailure })));
  for (const { root, sendFailure } of roots.toSorted((a, b) => a.root.length - b.root.length))
    router.use(root, (_request, response, next) => {
      sendFailuresBy(response, sendFailure);
      next();
    });
  return router;
}

/** Matches the addresses of an operation, also those with an id that cannot be decoded. */
export const addressesOf = ({ path }: Operation): RegExp =>
  new RegExp(`^${path.replaceAll(/\*\w+/g, '.+').replaceAll(/:\w+/g, '[^/]+')}$`);
