import type { Request as HttpRequest, Response as HttpResponse, NextFunction, RequestHandler } from 'express';
import { parseTargets } from '../../../shared/config/targets.js';
import {
  type ChatRequest,
  type ProblemError,
  providerIds,
  type Role,
  type Target,
} from '../../../shared/contracts/contract.js';
import { type Turn, toTurns } from '../../../shared/conversation.js';
import { Failure } from '../../../shared/failures.js';
import { isObject } from '../../../shared/json/json.js';
import { isModelName } from '../../../shared/models/model-names.js';
import { invalid, invalidRequest, maxErrorsListed } from '../../../shared/validation.js';
import { onCredentialsEnd, reloadAccess } from '../../access/authentication.js';
import type { AuthenticatedRequest } from '../../access/caller.js';
import type { Attachment, ChatCommand, StoreOptions } from '../../chat/chat-command.js';
import { readIdempotencyKey } from '../../http/idempotency-key.js';
import { listFields, unknownFieldsOf } from '../../http/ignored-fields.js';
import { type Applied, markApplied, prefersAsync, prefersStrict, readWait } from '../../http/prefer.js';
import { requestIdOf } from '../../http/problem.js';
import { traceOf } from '../../http/request-trace.js';
import { markChat } from './chat-response.js';

/** Runs `checkConversation` as the application configured it: the generated routes only know the request. */
export const checkChatRequest = (request: HttpRequest, response: HttpResponse, next: NextFunction): void => {
  const check = request.app.locals.checkConversation as RequestHandler;
  void check(request, response, next);
};

/**
 * Refuses a provider that does not exist with `unknown_provider`, and a body that is not a conversation with
 * `invalid_request` and its first errors. It runs before the generated validation, whose time grows with the square of
 * the errors, and which compares roles as text and so takes `["user"]` for `user`. Fields that nothing reads are listed
 * in `X-Ignored-Fields`, or refused under `Prefer: handling=strict`.
 */
export function checkConversation({ maxMessages }: { maxMessages: number }): RequestHandler {
  return (request, response, next) => {
    if (!providers.has(request.get('X-LLM') ?? '')) throw new Failure('unknown_provider');
    const messages = messagesOf(request.body, maxMessages);
    const errors: ProblemError[] = [];
    for (const [place, message] of messages.entries()) {
      errors.push(...errorsOf(message, `/messages/${place}`));
      if (errors.length >= maxErrorsListed) break;
    }
    const isStrict = prefersStrict(request.get('Prefer'));
    markApplied(response, { isStrict });
    const ignored = unknownFields(request.body, messages);
    if (isStrict)
      errors.push(...ignored.slice(0, maxErrorsListed).map(({ pointer, detail }) => ({ pointer, detail })));
    if (errors.length > 0) throw invalidRequest(errors);
    const names = listFields(ignored.map(({ name }) => name));
    if (names !== '') response.set('X-Ignored-Fields', names);
    next();
  };
}

const providers: ReadonlySet<string> = new Set(providerIds);
const roles: ReadonlySet<unknown> = new Set<Role | undefined>(['system', 'user', 'assistant', undefined]);

function messagesOf(body: unknown, maxMessages: number): unknown[] {
  if (!isObject(body)) throw invalid('', 'must be an object');
  const { messages } = body;
  if (messages === undefined) throw invalid('/messages', 'is required');
  if (!Array.isArray(messages)) throw invalid('/messages', 'must be an array');
  if (messages.length > maxMessages) throw invalid('/messages', `must have at most ${maxMessages} messages`);
  return messages;
}

function* errorsOf(message: unknown, pointer: string): Generator<ProblemError> {
  if (!isObject(message)) return yield { pointer, detail: 'must be an object' };
  if (!roles.has(message.role))
    yield { pointer: `${pointer}/role`, detail: 'must be system, user or assistant' };
  if (!['string', 'undefined'].includes(typeof message.content))
    yield { pointer: `${pointer}/content`, detail: 'must be a string' };
}

const chatFields = new Set(['messages']);
const messageFields = new Set(['role', 'content']);

function unknownFields(body: object, messages: readonly unknown[]): (ProblemError & { name: string })[] {
  const ofMessages = messages.flatMap((message, place) =>
    isObject(message) ? unknownFieldsOf(message, messageFields, ['messages', place]) : [],
  );
  return [
    ...unknownFieldsOf(body, chatFields).map((field) => ({ ...field, detail: 'is not a field of a chat' })),
    ...ofMessages.map((field) => ({ ...field, detail: 'is not a field of a message' })),
  ];
}

/**
 * How the headers want the chat to be done. Marks on the response which preferences are applied and, once it is known,
 * which stored chat it is, so that errors say it as well. Throws `invalid_request`.
 */
export function readOptions(
  request: AuthenticatedRequest,
  { prefer, idempotencyKey, fallback }: Record<'prefer' | 'idempotencyKey' | 'fallback', string | undefined>,
  /** The longest `wait` that a caller may ask for, in seconds. */
  maxWaitS: number,
): { options: Omit<ChatCommand, 'provider' | 'model' | 'written' | 'unfitFor' | 'bytes'>; applied: Applied } {
  const response = request.res as HttpResponse;
  const waitS = readWait(prefer, maxWaitS);
  const key = readIdempotencyKey(idempotencyKey);
  const isAsync = prefersAsync(prefer);
  const applied = { isStrict: prefersStrict(prefer), waitS };
  markApplied(response, applied);
  const onResolved: StoreOptions['onResolved'] = (id, facts) => markChat(response, id, facts);
  const storeOptions = { owner: request.user, key, isAsync, onResolved };
  const options = {
    requestId: requestIdOf(response),
    user: request.user.id,
    userName: request.user.name,
    fallback: readFallback(fallback),
    isStrict: applied.isStrict,
    waitMs: waitS && waitS * 1000,
    ...attachmentOf(request),
    trace: traceOf(response),
    storeOptions: isAsync || key !== undefined ? storeOptions : undefined,
  };
  return { options, applied };
}

/** Its signal aborts when the client leaves, or with `unauthorized` when access ends. Throws as `onCredentialsEnd`. */
export function attachmentOf(request: HttpRequest): Attachment {
  const response = request.res as HttpResponse;
  const left = new AbortController();
  if (response.destroyed) left.abort();
  else {
    const stop = onCredentialsEnd(request, (failure) => left.abort(failure));
    response.once('close', () => {
      stop();
      if (!response.writableFinished) left.abort();
    });
  }
  return { signal: left.signal, confirmAccess: () => reloadAccess(request) };
}

/** The turns of a conversation, and how they differ from its messages; undefined means not at all. */
export interface ReadConversation {
  turns: Turn[];
  changes: ChatCommand['changes'];
}

/** The conversation without its blank messages; throws `empty_conversation`. */
export function readTurns({ messages }: ChatRequest): ReadConversation {
  const turns = toTurns(messages);
  if (turns.length === 0) throw new Failure('empty_conversation');
  return { turns, changes: turns.length < messages.length ? ['dropped-blank'] : undefined };
}

/** Returns the model's name; throws `invalid_request` for what cannot be one. */
export function checkModel(model: string | undefined): string | undefined {
  if (model === undefined || isModelName(model)) return model;
  throw invalid('X-LLM-Model', 'is not a model name');
}

/** The providers of `X-LLM-Fallback`, in its order; undefined without it. Throws `invalid_request`. */
function readFallback(header: string | undefined): Target[] | undefined {
  if (header === undefined) return undefined;
  const targets = parseTargets(header);
  if (targets) return targets;
  throw invalid(
    'X-LLM-Fallback',
    'must be none, or a comma list of up to four different providers or provider/model',
  );
}
