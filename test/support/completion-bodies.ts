import { parseCompletionBody } from '../../api/chat-apis/openai-chat/completion-body.js';
import {
  type CompletionRequest,
  toCompletionRequest,
} from '../../api/chat-apis/openai-chat/completion-request.js';
import { RequestImages } from '../../api/chat-apis/openai-chat/images.js';
import type { ProviderId } from '../../shared/contracts/contract.js';
import { Failure } from '../../shared/failures.js';

/** Reads the body of a chat completion that has these fields besides a model and a greeting. */
export function readBody(fields: object, provider: ProviderId = 'openai'): CompletionRequest {
  const messages = [{ role: 'user', content: 'Hello' }];
  const body = parseCompletionBody({ model: `${provider}/m`, messages, ...fields }, 1000);
  return toCompletionRequest(body, undefined, { images: new RequestImages(1000) });
}

/** Why such a body is refused: `code pointer detail` of its first error, without the code of an invalid request. */
export function refusalOf(fields: object, provider?: ProviderId): string {
  try {
    readBody(fields, provider);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const [first] = error.facts.errors ?? [];
    const code = error.code === 'invalid_request' ? '' : error.code;
    return `${code}${first ? `${first.pointer} ${first.detail}` : ''}`;
  }
  return 'taken';
}
