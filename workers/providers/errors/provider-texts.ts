import type { FailureCode } from '../../../shared/failures.js';
import { keywords } from '../../../shared/models/schema-bounds.js';

/** Reads the texts of providers' errors. They are compared, and kept nowhere: they may quote a prompt or a key. */

/** Only this much of a text is compared. */
const maxCompared = 2000;

/** The words that a text may have in quotation marks and be read on: names of our own fields, and their values. */
const ownWords = [
  'temperature|top_?[pk]|seed|((frequency|presence)_)?penalty|(reasoning_?)?effort|thinking_?level|verbosity',
  '(disable_)?parallel_tool_(calls|use)|tool_choice|max_(completion_|new_)?tokens|inputs|stream|stream_options',
  'thinking|redacted_thinking|signature|data|encrypted_content|reasoning_content|none|tool|any|system',
].join('|');

// No quotation mark stands behind a letter: that is an apostrophe, or the end of one of the words.
const foreign = new RegExp(`(?<!\\w)(['"\`‘“])(?!(${ownWords})['"\`’”])|\\b\\w+://|\\bdata:|[{\\n]`, 'i');

/**
 * The beginning of a text, up to what it quotes of the request: a name, a value or an address. Only this may decide
 * anything, because each user has what they like in a request.
 */
export function unquoted(text: string): string {
  const start = text.slice(0, maxCompared);
  const { index } = foreign.exec(start) ?? {};
  return start.slice(0, index);
}

/**
 * "Too long", where a provider has no code for it: Anthropic, Bedrock (Claude, Llama, Nova, Cohere), Vertex AI; vLLM,
 * SGLang, Text Generation Inference (vllm#20409, vllm#12165, Qwen3#1321, sglang#4048, llm-vscode#94); the others are in
 * https://github.com/badlogic/pi-mono/blob/main/packages/ai/src/utils/overflow.ts
 */
const tooLong = [
  /\b(prompt|input)( \([\w ]{1,40}\))?( is)? too long\b|\binput token count is \d+ but\b/i,
  /\bexceeds? (the )?(context (limit|window)|maximum (number of tokens|allowed( input)? length))\b/i,
  /\bmaximum (context|prompt) length\b|\bavailable context size\b|\bcontext window exceeds limit\b/i,
  /\b(longer|greater) than the (model's context|maximum model|context) length\b/i,
  /\bnumber of (input )?tokens\b.{0,60}\bexceeds?\b|\bexceeded model token limit\b/i,
  /\btoken count of \d+ exceeds the limit\b|\breduce the length of the (messages|prompt)\b/i,
  /`inputs` tokens \+ `max_new_tokens` must be\b/,
];

/**
 * Spent credit, where Anthropic answers 400 without a code of its own. It counts at the beginning of a text alone,
 * where no word of a caller stands. https://github.com/anthropics/claude-code/issues/2127, 66314 and 91322
 */
const spent =
  /^(You have reached your specified (workspace )?API usage limits|Your credit balance is too low)\b/;

/**
 * A classifier has blocked the conversation: Anthropic, and OpenRouter with a 403 that has no code of its own.
 * https://openrouter.ai/docs/api/reference/errors-and-debugging
 */
const blocked = /\bblocked by content filtering policy\b|\byour input was flagged\b/i;

/** The failure that a text of a refusal means; undefined for any other refusal. */
export function codeByText(text = ''): FailureCode | undefined {
  const beginning = unquoted(text);
  if (spent.test(beginning)) return 'provider_error';
  if (tooLong.some((pattern) => pattern.test(beginning))) return 'context_length_exceeded';
  return blocked.test(beginning) ? 'content_blocked' : undefined;
}

/**
 * A step that operators can take, in our words: Bedrock has newer models by inference profiles alone, and says so.
 * https://github.com/terricain/aioboto3/issues/352
 */
export const readAdvice = (text = ''): string | undefined =>
  /\bon-demand throughput\b/.test(unquoted(text))
    ? 'name an inference profile in place of the model'
    : undefined;

const fields = [
  'messages|system|content|parts|part|role|type|text|image|image_url|source|url|media_type|contents|value|thinking',
  'tools|function|custom|name|description|strict|parameters|input_schema|toolConfig|toolSpec|inputSchema|json',
  'function_declarations|functionDeclarations|parameters_json_schema|parametersJsonSchema|tool_choice|toolChoice',
  'tool_calls|tool_call_id|tool_use|tool_result|toolUse|toolResult|function_call|function_response|signature',
  'response_format|json_schema|schema|output_config|outputConfig|textFormat|structure|jsonSchema|response_schema',
  'include|input|output|call_id|encrypted_content|reasoning|effort|summary|max_output_tokens',
  'response_json_schema|responseJsonSchema|generation_config|generationConfig|inferenceConfig|thinking_config',
  'temperature|top_p|top_k|seed|stop|stop_sequences|verbosity|max_tokens|max_completion_tokens|reasoning_effort',
  'frequency_penalty|presence_penalty|parallel_tool_calls|system_instruction|tool_config|thought_signature',
];
// The only character of JSON Schema's keywords with a meaning in a pattern is `$`.
const word = `(${[...fields, ...keywords].join('|').replaceAll('$', '\\$')})(?![\\w$-])`;
const place = `(?<place>${word}(\\.${word}|\\.\\d{1,4}(?!\\w)|\\[\\d{1,4}\\]){0,32})`;
const wholePlace = new RegExp(`^${place}`);
const placeAtStart = new RegExp(`^([\\w ]{1,60}: ){0,2}(\\* )?(GenerateContentRequest\\.)?${place}(?=[:.[])`);
const placeBehindAt = new RegExp(`\\bat ${place}`);

/**
 * The place in the request that the provider refuses, as its own field or its text has it, such as
 * `tools.0.custom.input_schema`. It has numbers and the words of APIs and of JSON Schema alone: it ends before the
 * first other name, which may be the caller's. Undefined without one.
 */
export function readPlace(field: unknown, text = ''): string | undefined {
  const beginning = unquoted(text);
  const found =
    typeof field === 'string' && field
      ? wholePlace.exec(field)
      : (placeAtStart.exec(beginning) ??
        placeBehindAt.exec(beginning) ??
        // Google has the place itself in quotation marks.
        (beginning.endsWith(' at ') ? wholePlace.exec(text.slice(beginning.length + 1)) : undefined));
  return found?.groups?.place;
}

/**
 * The limit that a refused conversation exceeds, in tokens, in the words of OpenAI (and vLLM, OpenRouter, xAI),
 * Anthropic, Gemini, Together AI and Mistral, as pi's `utils/overflow.ts` has them: a number, no word of the text.
 */
export const readContextTokens = (text = ''): number | undefined =>
  Number(contextLimit.exec(unquoted(text))?.[1]) || undefined;

const contextLimit =
  /\b(?:maximum (?:context|prompt) length (?:is|of) |configured limit of |tokens > |context limit: \d+ \+ \d+ > |number of tokens allowed \(|context length \(|for model with )(\d{1,9})\b/i;
