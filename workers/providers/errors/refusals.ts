import type { ParameterName } from '../../../shared/models/model-parameters.js';
import { unquoted } from './provider-texts.js';

/**
 * Parts that adapters add to a request, and without which the answer is the same: reasoning to be sent back, reasoning
 * in words, system texts in their places, marks for the cache, a limit that the caller has not asked for, the wish for
 * a stream, whose reader can have the reply in one piece, and its options. Three are another way of saying the same:
 * without `reasoningContent`, something stands for the reasoning that a server demands back, without `limitName` the
 * limit has its other name, and without `callIds` calls have ids of nine letters and digits.
 */
export const addedParts = [
  'encryptedReasoning',
  'summary',
  'laterSystem',
  'cache',
  'cap',
  'reasoningContent',
  'stream',
  'streamOptions',
  'limitName',
  'callIds',
] as const;
export type AddedPart = (typeof addedParts)[number];

/**
 * A part of a request that a provider refuses. A call can do without the named hints, without what an adapter
 * adds, and without the signatures of earlier replies. The effort, refused beside tools, has to be `none`. The choice
 * of a tool is the caller's to mend.
 */
export type Refusal = readonly ParameterName[] | AddedPart | 'effort' | 'signatures' | 'toolChoice';

interface RefusalFacts {
  param?: string | undefined;
  text?: string | undefined;
  words?: readonly unknown[] | undefined;
}

/**
 * Reads it from OpenAI's code or name of the parameter, or from the text, where the others say it, up to what that
 * quotes. Undefined for a refusal of anything else. The sources are in the long text of
 * decision 44 (`git show 99b4540e:docs/decisions/0044-parts-and-marks.md`).
 */
export function readRefusal({ param = '', text = '', words = [] }: RefusalFacts): Refusal | undefined {
  const beginning = unquoted(text);
  if (words.includes('invalid_encrypted_content')) return 'signatures';
  if (param !== '') return refusalOf(param, beginning);
  const [refusal] = tellingTexts.find(([, pattern]) => pattern.test(beginning)) ?? [];
  if (refusal) return refusal;
  if (limitName.test(beginning) && unknownField.test(beginning)) return 'limitName';
  // The schema of a tool may have properties of these names.
  if (/schema/i.test(beginning)) return undefined;
  if (cache.test(beginning)) return 'cache';
  if (ofCaller.test(beginning)) return undefined;
  if (stream.test(beginning)) return 'stream';
  const named = hintNames.filter(([, name]) => name.test(beginning)).map(([hint]) => hint);
  if (named.length > 0 && refused.test(beginning)) return named;
  return toolChoice.test(beginning) ? 'toolChoice' : undefined;
}

function refusalOf(param: string, beginning: string): Refusal | undefined {
  if (param === 'tool_choice') return 'toolChoice';
  if (param === 'include') return 'encryptedReasoning';
  // To accounts that are not verified: https://github.com/OpenHands/software-agent-sdk/issues/987
  if (param === 'reasoning.summary') return 'summary';
  if (param === 'stream') return 'stream';
  if (/^stream_options\b/.test(param)) return 'streamOptions';
  if (limitName.test(param)) return unknownField.test(beginning) ? 'limitName' : undefined;
  if ((param === 'reasoning_effort' || param === 'tools') && noEffort.test(beginning)) return 'effort';
  // In requests for responses two are within others.
  const own = param
    .replace(/^reasoning\.effort$/, 'reasoning_effort')
    .replace(/^text\.verbosity$/, 'verbosity');
  const name = own.replace(/_[a-z]/g, (letter) => letter.slice(1).toUpperCase());
  const [hint] = hintNames.find(([each]) => each === name) ?? [];
  return hint && [hint];
}

/**
 * Bedrock refuses streams for models without them, or without them beside tools (earendil-works/pi#3739, aws-samples/
 * amazon-bedrock-client-for-mac#112), OpenAI for organizations that are not verified (Lamb-Project/lamb#54), llama.cpp
 * before its pull 12379 with a 500 (simonw/llm-llama-server#3), and others in words of their own.
 */
const stream = /\bstream(s|ed|ing)?\b/i;

const streamOptions = /\bstream_options\b/i;

/** Mistral's text (anomalyco/opencode#1680), also with the code 3280. */
const callIds = /^tool call id was .{1,100} but must be a-z, A-Z, 0-9, with a length of 9\b/i;

/** Refused by Mistral (editor-code-assistant/eca#231), and by OpenAI's newer models (openai/openai-python#2046). */
const limitName = /\bmax_(completion_)?tokens\b/;

const unknownField =
  /\b(unsupported|unrecognized|unknown|unexpected|not (supported|permitted|allowed)|extra (inputs|fields))\b/i;

/** Bedrock's text (vercel/ai#2772, RooCodeInc/Roo-Code#248), and Anthropic's, which begins with both numbers. */
const cap = /\bmaximum tokens you requested exceeds?\b|\bmaximum allowed number of output tokens\b/i;

/** A place in the parts that only the caller can mend. */
const ofCaller =
  /^([\w ]{1,60}: )?(\* )?(GenerateContentRequest\.)?(messages|contents|system|tools|toolConfig\.tools)\b/;

const hintNames: readonly [ParameterName, RegExp][] = [
  ['temperature', /\btemperature\b/i],
  ['topP', /\btop_?p\b/i],
  ['topK', /\btop_?k\b/i],
  ['seed', /\bseed\b/i],
  ['frequencyPenalty', /\b(frequency_?)?penalty\b/i],
  ['presencePenalty', /\b(presence_?)?penalty\b/i],
  ['reasoningEffort', /\b((reasoning_?)?effort|thinking[ _]?level)\b/i],
  ['thinking', /\bthinking\.(type|budget_tokens)\b|\b(adaptive|extended) thinking\b/i],
  ['verbosity', /\bverbosity\b/i],
  ['parallelToolCalls', /\b(disable_)?parallel_tool_(calls|use)\b/i],
];

const refused =
  /\b(deprecated|unsupported|unrecognized|unknown|extra inputs|not (supported|enabled|allowed|permitted)|not support|doesn't support|cannot (both )?be|may only be|must be)\b/i;

/**
 * OpenAI's newer models refuse tools at any other effort, also at the one that they have by default; `param` is
 * `reasoning_effort` then. https://github.com/GoogleChromeLabs/webmcp-tools/issues/417
 */
const noEffort = /\bset reasoning_effort to 'none'/;

/** The second line is OpenAI's: https://github.com/openai/codex/issues/8145. It has the code as well, where others have none. */
const signatures =
  /\bsignature: field required\b|\binvalid `?(signature|data)`? in `?(redacted_)?thinking`? block|\breasoningContent\b|`thinking` or `redacted_thinking` blocks .* cannot be modified|\b(invalid|corrupted) thought[ _]signature\b|\bthought[ _]signature is not valid\b|\bencrypted content\b.{0,200}\bcould not be verified\b|`encrypted_content` was not issued to this caller\b/i;

/** DeepSeek's text about the calls of earlier replies: https://github.com/earendil-works/pi/issues/3636 */
const reasoningContent = /\breasoning_content`? in the thinking mode must be passed back\b/i;

/**
 * The texts for models that take system texts only before all other turns, and for those that did not know them.
 * https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages
 */
const laterSystem = /\brole 'system' is not supported\b|\bunexpected role "system"/i;

/**
 * Bedrock says the first of a place that the model has no mark in, and the second, with a 403 too, of a model that has
 * none at all. https://github.com/NousResearch/hermes-agent/blob/main/agent/bedrock_adapter.py
 */
const cache =
  /\bcache_?(control|point)\b.{0,9} (is )?not (permitted|supported)\b|\bcache_control: extra inputs\b|\bdid not allow prompt caching\b/i;

/** The texts that tell what is refused wherever they stand. */
const tellingTexts: readonly [Refusal, RegExp][] = [
  ['signatures', signatures],
  ['callIds', callIds],
  ['reasoningContent', reasoningContent],
  ['laterSystem', laterSystem],
  ['streamOptions', streamOptions],
  ['cap', cap],
];

const toolChoice = /\b(tool[ _]?choice|function[ _]calling[ _](config|mode)|allowed_function_names)\b/i;
