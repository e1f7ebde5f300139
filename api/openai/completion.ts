import type { Target } from '../../shared/contract.js';
import { writerOf } from '../../shared/protocol/outcome.js';
import type { Completion } from '../chat/chat-result.js';

/** Body of a successful `POST /v1/chat/completions`; see https://platform.openai.com/docs/api-reference/chat/object. */
export interface ChatCompletion {
  /** `chatcmpl-` and the id of the chat. */
  id: string;
  object: 'chat.completion';
  /** When the request came, in seconds since the epoch. */
  created: number;
  /** `provider/model` of the model that answered, as it was asked for. */
  model: string;
  /** Exactly one. */
  choices: CompletionChoice[];
  /** Absent where the provider does not count. */
  usage?: CompletionUsage;
  /** `flex` for a request with that tier. */
  service_tier?: 'flex';
}

/** The reply of the model. */
export interface CompletionChoice {
  index: number;
  message: CompletionMessage;
  logprobs: string | null;
  /** `length` when the reply was cut at the token limit. */
  finish_reason: 'stop' | 'length';
}

/** The reply as a message of the conversation. */
export interface CompletionMessage {
  role: 'assistant';
  content: string;
  refusal: string | null;
}

/** Tokens as the provider counted them. */
export interface CompletionUsage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
}

/** The fields that all forms of a completion share. */
export interface CompletionHead {
  readonly id: string;
  readonly created: number;
  /** `provider/model`. */
  readonly model: string;
  readonly isFlex: boolean;
}

/** The fields that a completion and its chunks begin with. */
export const headOf = <T extends string>(object: T, { id, created, model, isFlex }: CompletionHead) => ({
  ...{ id: `chatcmpl-${id}`, object, created, model },
  ...(isFlex && { service_tier: 'flex' as const }),
});

/** The whole reply; `head.model` is the model of the request. */
export function toChatCompletion(head: CompletionHead, completion: Completion): ChatCompletion {
  const { text } = completion;
  const usage = usageOf(completion);
  return {
    ...headOf('chat.completion', { ...head, model: nameOf(writerOf(completion)) ?? head.model }),
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: text, refusal: null },
        logprobs: null,
        finish_reason: finishReasonOf(completion),
      },
    ],
    ...(usage && { usage }),
  };
}

/** Undefined without a fallback, or if its worker does not name the model. */
export const nameOf = (writer: Target | undefined): string | undefined =>
  writer?.model === undefined ? undefined : `${writer.provider}/${writer.model}`;

export const finishReasonOf = ({ kind }: Completion): 'stop' | 'length' =>
  kind === 'ok' ? 'stop' : 'length';

/** Undefined where the provider does not count. */
export function usageOf({ usage }: Completion): CompletionUsage | undefined {
  if (usage === undefined) return undefined;
  const { inputTokens, outputTokens } = usage;
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
  };
}
