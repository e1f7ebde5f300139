import type { Request as HttpRequest, Response as HttpResponse, NextFunction } from 'express';
import type { ChatRequest, Turn } from '../shared/contract.js';
import { toTurns } from '../shared/conversation.js';
import { Failure } from '../shared/failures.js';

/**
 * The generated validation compares roles as text: it would take `["user"]` for `user`, and fail on an object that
 * has no text.
 */
export function refuseOddRoles(request: HttpRequest, _response: HttpResponse, next: NextFunction): void {
  const messages: unknown = request.body?.messages;
  const odd = Array.isArray(messages)
    ? messages.findIndex((message) => !['undefined', 'string'].includes(typeof message?.role))
    : -1;
  if (odd >= 0) throw invalid(`/messages/${odd}/role`, 'is not one of the documented values');
  next();
}

/** Aborts when the connection is closed before the answer was written: nobody will read it. */
export function whenGone(response: HttpResponse): AbortSignal {
  const going = new AbortController();
  if (response.destroyed) going.abort();
  response.once('close', () => {
    if (!response.writableFinished) going.abort();
  });
  return going.signal;
}

const invalid = (pointer: string, detail: string): Failure =>
  new Failure('invalid_request', { errors: [{ pointer, detail }] });

/** The conversation without its blank messages; throws `invalid_request` or `empty_conversation`. */
export function readTurns({ messages }: ChatRequest, most: number): Turn[] {
  if (messages.length > most) {
    throw invalid('/messages', `must have at most ${most} messages`);
  }
  const turns = toTurns(messages);
  if (turns.length === 0) throw new Failure('empty_conversation');
  return turns;
}

/** Model names become parts of providers' URLs: no dots that climb, nothing that needs escaping. */
const modelName = /^(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9._:/@-]{0,255}$/;

/** Gives the model's name back; throws `invalid_request` for what cannot be one. */
export function checkModel(model: string | undefined): string | undefined {
  if (model === undefined || modelName.test(model)) return model;
  throw invalid('X-LLM-Model', 'is not a model name');
}
