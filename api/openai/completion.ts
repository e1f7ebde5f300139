import type { Completion } from '../chat/chat-result.js';

/** Body of a successful `POST /v1/chat/completions`; see https://platform.openai.com/docs/api-reference/chat/object. */
export interface ChatCompletion {
  /** `chatcmpl-` and the id of the chat. */
  id: string;
  object: 'chat.completion';
  /** When the request came, in seconds since the epoch. */
  created: number;
  /** The model that answered, in the provider's words. */
  model: string;
  /** Exactly one. */
  choices: CompletionChoice[];
  /** Absent where the provider does not count. */
  usage?: CompletionUsage;
  /** `flex` for a request with that tier. */
  service_tier?: 'flex';
  system_fingerprint: string | null;
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

/** What is the same in all that a completion is told in. */
export interface CompletionHead {
  readonly id: string;
  readonly created: number;
  readonly model: string;
  readonly isFlex: boolean;
}

/** The fields that a completion and its chunks begin with. */
export const headOf = <T extends string>(object: T, { id, created, model, isFlex }: CompletionHead) => ({
  ...{ id: `chatcmpl-${id}`, object, created, model, system_fingerprint: null },
  ...(isFlex && { service_tier: 'flex' as const }),
});

/** The whole reply; the model of the head is not the provider's word yet. */
export function toChatCompletion(head: CompletionHead, completion: Completion): ChatCompletion {
  const { text, model } = completion;
  const usage = usageOf(completion);
  return {
    ...headOf('chat.completion', { ...head, model }),
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
