import type { Request as HttpRequest, Response as HttpResponse, NextFunction, RequestHandler } from 'express';
import {
  type ChatRequest,
  type ProblemError,
  providerIds,
  type Role,
} from '../../../shared/contracts/contract.js';
import { toTurns } from '../../../shared/conversation.js';
import { Failure } from '../../../shared/failures.js';
import { isObject } from '../../../shared/json/json.js';
import { invalid, invalidRequest, maxErrorsListed } from '../../../shared/validation.js';
import { listFields, unknownFieldsOf } from '../../http/ignored-fields.js';
import { markApplied, prefersStrict } from '../../http/prefer.js';
import type { ReadConversation } from '../request-options.js';

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

/** The conversation without its blank messages; throws `empty_conversation`. */
export function readTurns({ messages }: ChatRequest): ReadConversation {
  const turns = toTurns(messages);
  if (turns.length === 0) throw new Failure('empty_conversation');
  return { turns, changes: turns.length < messages.length ? ['dropped-blank'] : undefined };
}
