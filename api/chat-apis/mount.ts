import { type Response as HttpResponse, type RequestHandler, Router } from 'express';
import type { AcceptedChat } from '../../shared/contracts/contract.js';
import { expressAuthentication } from '../access/authentication.js';
import type { AuthenticatedRequest } from '../access/caller.js';
import { acceptApiKey } from '../access/credentials.js';
import type { ChatCommand } from '../chat/chat-command.js';
import { answeredBy, attemptsHeader, type Completion } from '../chat/chat-result.js';
import { changesHeader } from '../chat/conversation-changes.js';
import { type BodyLimits, jsonBody } from '../http/json-body.js';
import { type Applied, markApplied } from '../http/prefer.js';
import { methodNotAllowed, requestIdOf, type SendFailure } from '../http/problem.js';
import type { ChatApi, ChatApiDeps, Operation } from './chat-api.js';

/** Everything that mounted operations need besides the operations. */
export interface MountOptions {
  readonly deps: ChatApiDeps;
  /** The limits of a body that an operation does not set itself. */
  readonly body: BodyLimits;
  /** Counts the requests for chats at this path. */
  readonly countChats: (path: string) => RequestHandler;
  /** The header of an operation that does not name one itself; absent means none. */
  readonly apiKeyHeader?: ChatApi['apiKeyHeader'];
}

/** A router does not inherit these settings from the application. */
export const exact = { caseSensitive: true, strict: true };

/** The routes of these operations, behind `before`; another method at one of their addresses is refused. */
export function apiRouter(
  operations: readonly Operation[],
  { deps, body, countChats, ...mounted }: MountOptions,
  before: readonly RequestHandler[],
): Router {
  const router = Router(exact);
  const counts = operations.filter(({ beginsChat }) => beginsChat).map(({ path }) => countChats(path));
  for (const handler of [...before, ...counts]) router.use(handler);
  for (const { method, path, body: limitsOf, apiKeyHeader = mounted.apiKeyHeader, handle } of operations) {
    const limits = limitsOf?.(deps.config);
    const readBody = limits ? [jsonBody({ ...body, ...limits })] : [];
    router[method](path, authenticateBy(apiKeyHeader), ...readBody, (request, response) =>
      handle(request as AuthenticatedRequest, response, deps),
    );
  }
  for (const [path, atPath] of Map.groupBy(operations, (operation) => operation.path))
    router.all(path, methodNotAllowed(allowedAt(atPath)));
  return router;
}

/** Authenticates like the generated routes of other operations. */
const authenticateBy =
  (apiKeyHeader: ChatApi['apiKeyHeader']): RequestHandler =>
  async (request, _response, next) => {
    if (apiKeyHeader) acceptApiKey(request, apiKeyHeader);
    Object.assign(request, { user: await expressAuthentication(request, 'chat') });
    next();
  };

/** The value of `Allow`. */
const allowedAt = (operations: readonly Operation[]): string =>
  operations
    .flatMap(({ method }) => (method === 'get' ? ['GET', 'HEAD'] : [method.toUpperCase()]))
    .join(', ');

/** Finds how failures at a path are sent: as the API with the longest root above it does; undefined as problems. */
export function failuresBelow(apis: readonly ChatApi[]): (path: string) => SendFailure | undefined {
  const roots = apis
    .flatMap(({ roots, sendFailure }) => roots.map((root) => ({ root, sendFailure })))
    .toSorted((a, b) => b.root.length - a.root.length);
  return (path) => roots.find(({ root }) => `${path}/`.startsWith(`${root}/`))?.sendFailure;
}

/** Tests whether one of the operations is at a path, which need not be decodable. */
export function pathTest(operations: readonly Operation[]): (path: string) => boolean {
  const addresses = operations.map(
    ({ path }) => new RegExp(`^${path.replaceAll(/\*\w+/g, '.*').replaceAll(/:\w+/g, '[^/]+')}$`),
  );
  return (path) => addresses.some((address) => address.test(path));
}

/** Answers 202 with the address of the stored chat. */
export function sendAccepted(response: HttpResponse, { id, status }: AcceptedChat, applied: Applied): void {
  const accepted: AcceptedChat = { id, status };
  markApplied(response, { ...applied, isAsync: true });
  response.status(202).set('Location', pathOfChat(id, response)).json(accepted);
}

/** Marks which stored chat the response is about, and whether it had ended before. */
export function markChat(response: HttpResponse, id: string, { isReplayed }: { isReplayed: boolean }): void {
  response.locals.chatId = id;
  response.set('Content-Location', pathOfChat(id, response));
  if (isReplayed) response.set('Idempotency-Replayed', 'true');
}

/** Id of the chat that the response is about. */
export const chatIdOf = (response: HttpResponse): string => response.locals.chatId ?? requestIdOf(response);

const pathOfChat = (id: string, response: HttpResponse): string => `${response.locals.basePath}/chat/${id}`;

/** The headers that describe a reply. */
export function completionHeaders(
  completion: Completion,
  { provider, changes }: Pick<ChatCommand, 'provider' | 'changes'>,
): Record<string, string> {
  const { kind, model, usage, queueMs, providerMs, attempts } = completion;
  return {
    'X-LLM-Provider': answeredBy(completion, provider),
    'X-LLM-Model': model,
    'X-LLM-Finish-Reason': kind === 'ok' ? 'stop' : 'length',
    ...(usage && {
      'X-LLM-Input-Tokens': `${usage.inputTokens}`,
      'X-LLM-Output-Tokens': `${usage.outputTokens}`,
    }),
    ...attemptsHeader(attempts),
    ...changesHeader(changes, completion.changes),
    'Server-Timing': `queue;dur=${queueMs}, provider;dur=${providerMs}`,
  };
}
