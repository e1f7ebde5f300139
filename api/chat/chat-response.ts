import type { Response as HttpResponse } from 'express';
import type { AcceptedChat, ChatResponse, ProviderId } from '../../shared/contract.js';
import { markApplied } from '../http/prefer.js';
import type { Completion } from './chat-result.js';

/** Sent here, because the generator knows one successful answer; what it gives is not sent again. */
export function sendAccepted(
  response: HttpResponse,
  { id, status }: AcceptedChat,
  applied: { isStrict: boolean; waitS: number | undefined },
): ChatResponse {
  const accepted: AcceptedChat = { id, status };
  const location = addressOf(id, response);
  markApplied(response, { ...applied, isAsync: true });
  response.status(202).set({ Location: location }).json(accepted);
  return { response: '' };
}

/** Where a chat can be read, under the base that the request came to. */
export const addressOf = (id: string, response: HttpResponse): string =>
  `${response.locals.basePath}/chat/${id}`;

/** The facts about a reply, which travel in headers. */
export function answerHeaders(answer: Completion, provider: ProviderId): Record<string, string> {
  const { kind, model, usage, queueMs, providerMs } = answer;
  return {
    'X-LLM-Provider': provider,
    'X-LLM-Model': model,
    'X-LLM-Finish-Reason': kind === 'ok' ? 'stop' : 'length',
    ...(usage && {
      'X-LLM-Input-Tokens': `${usage.inputTokens}`,
      'X-LLM-Output-Tokens': `${usage.outputTokens}`,
    }),
    'Server-Timing': `queue;dur=${queueMs}, provider;dur=${providerMs}`,
  };
}
