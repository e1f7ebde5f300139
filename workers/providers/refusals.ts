import type { ParameterName } from '../../shared/protocol/model-parameters.js';
import { unquoted } from './provider-texts.js';

/**
 * What we add to a request, or put where not every model takes it. A call can do without each, and no caller has asked
 * for one: the encrypted reasoning of OpenAI's replies, system texts behind other turns, marks for a cache, a token
 * limit of our own, and reasoning that goes back to a server.
 */
export const addedParts = ['encryptedReasoning', 'laterSystem', 'cache', 'cap', 'reasoningContent'] as const;

export type AddedPart = (typeof addedParts)[number];

/**
 * A part of a request that a provider's 400 refuses. A call can do without the named hints, without the signatures of
 * earlier replies, and without our own parts. The effort, refused beside tools, has to be `none`. The choice of a tool
 * is the caller's to mend.
 */
export type Refusal = readonly ParameterName[] | 'effort' | 'signatures' | 'toolChoice' | AddedPart;

/**
 * Reads it from OpenAI's name of the parameter, or from the text, where the others say it, up to what that quotes.
 * Undefined for a refusal of anything else. The sources are in docs/decisions/0044-parts-and-marks.md.
 */
export function readRefusal({ param = '', text = '' }: RefusalFacts): Refusal | undefined {
  const said = unquoted(text);
  if (param !== '') return refusalOf(param, said);
  if (signatures.test(said)) return 'signatures';
  if (laterSystem.test(said)) return 'laterSystem';
  // The schema of a tool may have properties of these names.
  if (/schema/i.test(said)) return undefined;
  if (cache.test(said)) return 'cache';
  if (ofCaller.test(said)) return undefined;
  const named = hintNames.filter(([, name]) => name.test(said)).map(([hint]) => hint);
  if (named.length > 0 && refused.test(said)) return named;
  return toolChoice.test(said) ? 'toolChoice' : undefined;
}

interface RefusalFacts {
  readonly param?: string | undefined;
  readonly text?: string | undefined;
}

function refusalOf(param: string, said: string): Refusal | undefined {
  if (param === 'tool_choice') return 'toolChoice';
  if ((param === 'reasoning_effort' || param === 'tools') && noEffort.test(said)) return 'effort';
  const name = param.replace(/_[a-z]/g, (letter) => letter.slice(1).toUpperCase());
  const [hint] = hintNames.find(([each]) => each === name) ?? [];
  return hint && [hint];
}

/** A place in what only the caller can mend. */
const ofCaller =
  /^([\w ]{1,60}: )?(\* )?(GenerateContentRequest\.)?(messages|contents|system|tools|toolConfig\.tools)\b/;

const hintNames: readonly [ParameterName, RegExp][] = [
  ['temperature', /\btemperature\b/i],
  ['topP', /\btop_?p\b/i],
  ['seed', /\bseed\b/i],
  ['frequencyPenalty', /\b(frequency_?)?penalty\b/i],
  ['presencePenalty', /\b(presence_?)?penalty\b/i],
  ['reasoningEffort', /\b((reasoning_?)?effort|thinking[ _]?level)\b/i],
  ['verbosity', /\bverbosity\b/i],
  ['parallelToolCalls', /\b(disable_)?parallel_tool_(calls|use)\b/i],
];

const refused =
  /\b(deprecated|unsupported|unrecognized|unknown|not (supported|enabled|allowed|permitted)|not support|doesn't support|cannot (both )?be|may only be|must be)\b/i;

/**
 * OpenAI's newer models refuse tools at any other effort, also at the one that they have by default; `param` is
 * `reasoning_effort` then. https://github.com/GoogleChromeLabs/webmcp-tools/issues/417
 */
const noEffort = /\bset reasoning_effort to 'none'/;

const signatures =
  /\bsignature: field required\b|\binvalid `?(signature|data)`? in `?(redacted_)?thinking`? block|\breasoningContent\b|`thinking` or `redacted_thinking` blocks .* cannot be modified|\b(invalid|corrupted) thought[ _]signature\b|\bthought[ _]signature is not valid\b/i;

/**
 * Of models that take system texts before all other turns alone, and of those that did not know them there at all.
 * https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages
 */
const laterSystem = /\brole 'system' is not supported\b|\bunexpected role "system"/i;

/**
 * Bedrock says the first of a place that the model has no mark in, and the second, with a 403 too, of a model that has
 * none at all. https://github.com/NousResearch/hermes-agent/blob/main/agent/bedrock_adapter.py
 */
const cache =
  /\bcache_?(control|point)\b.{0,9} (is )?not (permitted|supported)\b|\bcache_control: extra inputs\b|\bdid not allow prompt caching\b/i;

const toolChoice = /\b(tool[ _]?choice|function[ _]calling[ _](config|mode)|allowed_function_names)\b/i;
