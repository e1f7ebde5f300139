import type { Request as HttpRequest, Response as HttpResponse, NextFunction, RequestHandler } from 'express';
import {
  type ChatRequest,
  type ProblemError,
  providerIds,
  type Role,
  type Turn,
} from '../../shared/contract.js';
import { toTurns } from '../../shared/conversation.js';
import { Failure } from '../../shared/failures.js';
import { fieldName, listFields, pointerStep } from '../http/ignored-fields.js';
import { markApplied, prefersStrict } from '../http/prefer.js';
import { invalidRequest, maxErrorsListed } from '../http/validation.js';

/** The application's own check, for routes that only know the request; see `app.locals.checkConversation`. */
export const checkChatRequest = (request: HttpRequest, response: HttpResponse, next: NextFunction): void => {
  const check = request.app.locals.checkConversation as RequestHandler;
  void check(request, response, next);
};

/**
 * Refuses a body that is not a conversation, with the first errors alone: `invalid_request`, or `unknown_provider`, which
 * comes first. Before the generated validation, whose time grows with the square of the errors, and which compares roles
 * as text, so that it would take `["user"]` for `user`. Fields that nothing reads are told in `X-Ignored-Fields`, or refused under
 * `Prefer: handling=strict`.
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

function messagesOf(body: unknown, most: number): unknown[] {
  if (!isObject(body)) throw invalid('', 'must be an object');
  const { messages } = body;
  if (messages === undefined) throw invalid('/messages', 'is required');
  if (!Array.isArray(messages)) throw invalid('/messages', 'must be an array');
  if (messages.length > most) throw invalid('/messages', `must have at most ${most} messages`);
  return messages;
}

function errorsOf(message: unknown, pointer: string): ProblemError[] {
  if (!isObject(message)) return [{ pointer, detail: 'must be an object' }];
  const { role, content } = message;
  return [
    ...(roles.has(role)
      ? []
      : [{ pointer: `${pointer}/role`, detail: 'is not one of the documented values' }]),
    ...(['string', 'undefined'].includes(typeof content)
      ? []
      : [{ pointer: `${pointer}/content`, detail: 'must be a string' }]),
  ];
}

interface UnknownField extends ProblemError {
  /** As `X-Ignored-Fields` has it. */
  name: string;
}

/** All of them, which are fewer than the values that a body may have. */
function unknownFields(body: object, messages: readonly unknown[]): UnknownField[] {
  const unknown: UnknownField[] = [];
  for (const name of Object.keys(body)) {
    if (name === 'messages') continue;
    unknown.push({
      name: fieldName(name),
      pointer: `/${pointerStep(name)}`,
      detail: 'is not a field of a chat',
    });
  }
  for (const [place, message] of messages.entries()) {
    if (!isObject(message)) continue;
    for (const name of Object.keys(message)) {
      if (name === 'role' || name === 'content') continue;
      const pointer = `/messages/${place}/${pointerStep(name)}`;
      unknown.push({ name: `messages/*/${fieldName(name)}`, pointer, detail: 'is not a field of a message' });
    }
  }
  return unknown;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Aborts when the connection is closed before the answer was written: nobody will read it. */
export function disconnectSignal(response: HttpResponse): AbortSignal {
  const going = new AbortController();
  if (response.destroyed) going.abort();
  response.once('close', () => {
    if (!response.writableFinished) going.abort();
  });
  return going.signal;
}

const invalid = (pointer: string, detail: string): Failure => invalidRequest([{ pointer, detail }]);

/** The conversation without its blank messages; throws `empty_conversation`. */
export function readTurns({ messages }: ChatRequest): Turn[] {
  const turns = toTurns(messages);
  if (turns.length === 0) throw new Failure('empty_conversation');
  return turns;
}

/** How much room a conversation takes up, in bytes of UTF-8, its roles and marks left out. */
export const bytesOf = (turns: readonly Turn[]): number =>
  turns.reduce((total, { content }) => total + Buffer.byteLength(content), 0);

/** Model names become parts of providers' URLs: no dots that climb, nothing that needs escaping. */
const modelName = /^(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9._:/@-]{0,255}$/;

/** Gives the model's name back; throws `invalid_request` for what cannot be one. */
export function checkModel(model: string | undefined): string | undefined {
  if (model === undefined || modelName.test(model)) return model;
  throw invalid('X-LLM-Model', 'is not a model name');
}
