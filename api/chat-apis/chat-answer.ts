import type { Response as HttpResponse } from 'express';
import type { AcceptedChat } from '../../shared/contracts/contract.js';
import type { ChatCommand } from '../chat/chat-command.js';
import { answeredBy, attemptsHeader, type Completion } from '../chat/chat-result.js';
import { changesHeader } from '../chat/conversation-changes.js';
import { type Applied, markApplied } from '../http/prefer.js';
import { requestIdOf } from '../http/problem.js';

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
