import { z } from 'zod';
import { modelName, tierName, tokenCount, tokenCounts, withCache } from '../reply/answer-fields.js';
import type { ReplyPart } from '../reply/provider-call.js';

/** The answers of Anthropic's Messages API, as far as they are read. */

/** The category of a refusal by a classifier: https://platform.claude.com/docs/en/build-with-claude/refusals-and-fallback */
export const refusalOf = ({ stop_reason, stop_details }: z.infer<typeof stopped>): string | undefined =>
  stop_reason === 'refusal' ? (stop_details?.category ?? 'other') : undefined;

export const usage = tokenCounts({
  input_tokens: tokenCount,
  output_tokens: tokenCount,
  cache_read_input_tokens: tokenCount,
  cache_creation_input_tokens: tokenCount,
  cache_creation: tokenCounts({ ephemeral_1h_input_tokens: tokenCount }),
  service_tier: tierName,
  output_tokens_details: tokenCounts({ thinking_tokens: tokenCount }),
});

const text = z.string().nullish();
export const block = z.object({
  type: z.string(),
  text,
  id: text,
  name: text,
  input: z.unknown().optional(),
  thinking: text,
  signature: text,
  data: text,
});

/** `RefusalStopDetails` of the SDK. */
const details = z.object({
  category: z
    .string()
    .regex(/^\w{1,50}$/)
    .nullish()
    .catch(undefined),
});
const stopped = z.object({ stop_reason: text, stop_details: details.nullish().catch(undefined) });

export const message = z.object({ model: modelName, content: z.array(block), ...stopped.shape, usage });

export const streamEvent = z.object({
  type: text,
  index: z.number().optional(),
  message: z.object({ model: modelName, usage }).nullish(),
  content_block: block.nullish(),
  delta: z
    .object({ type: text, text, partial_json: text, thinking: text, signature: text, ...stopped.shape })
    .nullish(),
  usage,
});

export type UsageCounts = z.infer<typeof usage>;

export function toUsage(counts: z.infer<typeof usage>): ReplyPart['usage'] {
  const { input_tokens, output_tokens, output_tokens_details } = counts ?? {};
  const { cache_read_input_tokens: read, cache_creation_input_tokens: written } = counts ?? {};
  return {
    inputTokens: withCache(input_tokens, read, written),
    outputTokens: output_tokens,
    cachedTokens: read,
    cacheWriteTokens: written,
    cacheWrite1hTokens: counts?.cache_creation?.ephemeral_1h_input_tokens,
    reasoningTokens: output_tokens_details?.thinking_tokens,
  };
}
