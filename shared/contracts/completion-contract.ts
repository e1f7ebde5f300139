/**
 * The answer of OpenAI's chat completions, at `POST /v1/chat/completions` and in stored chats. Plain interfaces without
 * imports: the OpenAPI document is generated from them.
 */

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
  /** `tool_calls` when the model calls tools, `length` when the reply was cut at the token limit. */
  finish_reason: 'stop' | 'length' | 'tool_calls';
}

/** The reply as a message of the conversation. */
export interface CompletionMessage {
  role: 'assistant';
  /** All of its text; null when there is none beside the calls. */
  content: string | null;
  refusal: string | null;
  /** In the model's order; absent when it calls no tool. */
  tool_calls?: CompletionToolCall[];
}

/** A call of one of the request's tools. */
export interface CompletionToolCall {
  /** The result names it as `tool_call_id`. */
  id: string;
  type: 'function';
  function: CompletionFunction;
  extra_content?: ExtraContent;
}

/** The function that the model calls. */
export interface CompletionFunction {
  name: string;
  /** JSON text of an object, unless the reply was cut at the token limit. */
  arguments: string;
}

/** Data that only the named model can read; sent back with the call, it thinks on where it stopped. */
export interface ExtraContent {
  google?: { thought_signature: string; model?: string };
  anthropic?: { signed_thinking: string; model?: string };
  bedrock?: { signed_thinking: string; model?: string };
  openai?: { reasoning: string; model: string };
}

/** Tokens as the provider counted them. */
export interface CompletionUsage {
  /** All of the input, whether or not it was cached. */
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  /** Absent where the provider does not tell it. */
  prompt_tokens_details?: {
    /** Read from the provider's cache. */
    cached_tokens?: number;
    /** Written to the provider's cache. */
    cache_write_tokens?: number;
  };
  /** Absent where the provider does not tell it. */
  completion_tokens_details?: {
    /** With which the model thought. */
    reasoning_tokens?: number;
  };
}
