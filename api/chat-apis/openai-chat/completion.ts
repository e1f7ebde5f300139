import type {
  ChatCompletion,
  CompletionChoice,
  CompletionToolCall,
  CompletionUsage,
  ExtraContent,
} from '../../../shared/contracts/completion-contract.js';
import type { ProviderId, Target } from '../../../shared/contracts/contract.js';
import { givenFields } from '../../../shared/json/json.js';
import { writerOf } from '../../../shared/protocol/outcome.js';
import { type CallMark, hasCalls, piecesOf, textOfTape } from '../../../shared/protocol/parts.js';
import type { StoredChat } from '../../../shared/protocol/stored-chat.js';
import type { Completion } from '../../chat/chat-result.js';
import { PartsBeforeCall } from './extra-content.js';

/** The fields that all forms of a completion share. */
export interface CompletionHead {
  readonly id: string;
  readonly created: number;
  /** The provider that the request names. */
  readonly provider: ProviderId;
  /** The model as the caller named it: `provider/model`, or an alias. */
  readonly model: string;
  readonly isFlex: boolean;
}

/** The fields that a completion and its chunks begin with. */
export const headOf = <T extends string>(object: T, { id, created, model, isFlex }: CompletionHead) => ({
  id: `chatcmpl-${id}`,
  object,
  created,
  model,
  ...(isFlex && { service_tier: 'flex' as const }),
});

/** The whole reply; `head.model` is the model of the request. */
export function toChatCompletion(head: CompletionHead, completion: Completion): ChatCompletion {
  const text = textOfTape(completion);
  const before = new PartsBeforeCall();
  const calls: CompletionToolCall[] = [];
  for (const piece of piecesOf(completion)) {
    if (piece.kind === 'call') calls.push(toToolCall(piece, before.take()));
    else before.add(piece);
  }
  const content = text === '' && calls.length > 0 ? null : text;
  return {
    ...headOf('chat.completion', { ...head, model: nameOf(writerOf(completion)) ?? head.model }),
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content,
          refusal: null,
          ...(calls.length > 0 && { tool_calls: calls }),
        },
        logprobs: null,
        finish_reason: finishReasonOf(completion),
      },
    ],
    ...givenFields({ usage: usageOf(completion) }),
  };
}

/** A call that the provider's model makes. */
export const toToolCall = (
  { id, name, arguments: text }: CallMark & { readonly arguments: string },
  extra: ExtraContent | undefined,
): CompletionToolCall => ({
  id,
  type: 'function',
  function: { name, arguments: text },
  ...givenFields({ extra_content: extra }),
});

/** The completion of a stored chat. */
export function toStoredCompletion(
  { id, createdAt, provider, model = '' }: StoredChat,
  completion: Completion,
): ChatCompletion {
  const created = Math.floor(createdAt / 1000);
  const head = { id, created, provider, model: `${provider}/${model}`, isFlex: false };
  return toChatCompletion(head, completion);
}

/** Undefined without a fallback, or if its worker does not name the model. */
export const nameOf = (writer: Target | undefined): string | undefined =>
  writer?.model === undefined ? undefined : `${writer.provider}/${writer.model}`;

export function finishReasonOf(completion: Completion): CompletionChoice['finish_reason'] {
  if (completion.kind === 'truncated') return 'length';
  return hasCalls(completion) ? 'tool_calls' : 'stop';
}

/** Undefined where the provider does not count. */
export function usageOf({ usage }: Completion): CompletionUsage | undefined {
  if (usage === undefined) return undefined;
  const { inputTokens, outputTokens, cachedTokens, cacheWriteTokens, reasoningTokens } = usage;
  const input = givenFields({ cached_tokens: cachedTokens, cache_write_tokens: cacheWriteTokens });
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    ...(Object.keys(input).length > 0 && { prompt_tokens_details: input }),
    ...(reasoningTokens !== undefined && {
      completion_tokens_details: { reasoning_tokens: reasoningTokens },
    }),
  };
}
