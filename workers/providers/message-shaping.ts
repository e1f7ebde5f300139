import { createHash } from 'node:crypto';
import {
  isBlank,
  type Part,
  type ToolCallPart,
  type ToolResultPart,
  type Turn,
} from '../../shared/conversation.js';
import type { ProviderRequest } from './provider.js';
import { toObjectText } from './reply/exact-json.js';

/**
 * Whether the provider is asked to cache the request: where its beginning will most likely be sent again, because an
 * agent or a conversation goes on. A single question would cost a quarter more for nothing.
 */
export const isCached = ({ turns, parameters, omits }: ProviderRequest, promptCache = 'off'): boolean =>
  promptCache !== 'off' &&
  !omits?.has('cache') &&
  (parameters?.tools !== undefined || turns.some(({ role }) => role === 'assistant'));

/** A call's id as this provider takes it: another's may be of any form. Ids only have to match within one request. */
export const toFittingId = (id: string, pattern: RegExp): string =>
  pattern.test(id) ? id : `c_${createHash('sha256').update(id).digest('base64url').slice(0, 22)}`;

/**
 * The arguments of an earlier call as the JSON text of an object, for providers that take nothing else. One that is
 * none, such as a text that the token limit has cut, is held by an object.
 */
export const argumentsOf = ({ arguments: text }: ToolCallPart): string =>
  toObjectText(text) ?? JSON.stringify({ _invalid: text });

/** The text of a result as Claude takes it: not blank. */
export const resultText = ({ content }: ToolResultPart): string =>
  isBlank(content) ? '(no output)' : content;

/** Turns whose calls have ids of nine letters and digits, as Mistral demands: https://github.com/anomalyco/opencode/issues/1680 */
export const withPlainIds = (turns: readonly Turn[]): Turn[] =>
  turns.map((turn) =>
    typeof turn.content === 'string' ? turn : { ...turn, content: turn.content.map(withPlainId) },
  );

function withPlainId(part: Part): Part {
  if (part.type === 'tool_call') return { ...part, id: toPlainId(part.id) };
  return part.type === 'tool_result' ? { ...part, callId: toPlainId(part.callId) } : part;
}

const toPlainId = (id: string): string =>
  /^[a-z0-9]{9}$/i.test(id) ? id : createHash('sha256').update(id).digest('hex').slice(0, 9);
