import type { Request as HttpRequest, Response as HttpResponse, NextFunction, RequestHandler } from 'express';
import { z } from 'zod';
import {
  type ChatRequest,
  type ProblemError,
  providerIds,
  type Role,
} from '../../../shared/contracts/contract.js';
import { toTurns } from '../../../shared/conversation.js';
import { Failure } from '../../../shared/failures.js';
import { isObject } from '../../../shared/json/json.js';
import { checkFields } from '../../http/json-body.js';
import { unknownFieldsOf } from '../../http/query.js';
import type { ReadConversation } from '../request-options.js';

/** Runs `checkConversation` as the application configured it: the generated routes only know the request. */
export const checkChatRequest = (request: HttpRequest, response: HttpResponse, next: NextFunction): void => {
  const check = request.app.locals.checkConversation as RequestHandler;
  void check(request, response, next);
};

/**
 * Refuses a provider that does not exist with `unknown_provider`, and a body that is not a conversation with
 * `invalid_request` and its first errors. It runs before the generated validation, whose time grows with the square of
 * the errors, and which compares roles as text and so takes `["user"]` for `user`. Unknown fields: as `checkFields`.
 */
export function checkConversation({ maxMessages }: { maxMessages: number }): RequestHandler {
  const checkBody = checkFields(conversationOf(maxMessages), unknownFields);
  return (request, response, next) => {
    if (!providers.has(request.get('X-LLM') ?? '')) throw new Failure('unknown_provider');
    checkBody(request, response, next);
  };
}

const providers: ReadonlySet<string> = new Set(providerIds);

const message = z.object({
  role: z.enum(['system', 'user', 'assistant'] satisfies Role[]).optional(),
  content: z.string().optional(),
});

/** The schema of a conversation. The messages are counted before any of them is read. */
const conversationOf = (maxMessages: number) =>
  z.object({
    messages: z
      .array(z.unknown())
      .max(maxMessages, { error: `must have at most ${maxMessages} messages` })
      .pipe(z.array(message)),
  });

const chatFields = new Set(['messages']);
const messageFields = new Set(['role', 'content']);

function unknownFields(body: unknown): (ProblemError & { name: string })[] {
  if (!isObject(body)) return [];
  const messages: unknown[] = Array.isArray(body.messages) ? body.messages : [];
  const ofMessages = messages.flatMap((each, place) =>
    isObject(each) ? unknownFieldsOf(each, messageFields, ['messages', place]) : [],
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
