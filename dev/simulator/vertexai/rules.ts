import { isObject, isPositiveInteger, type JsonObject, repeatedRoleAt, unknownKeys } from '../json.js';
import type { Refusal } from '../refusal.js';
import { vertexError } from './errors.js';

const knownFields = new Set(
  'contents systemInstruction generationConfig safetySettings tools toolConfig labels cachedContent modelArmorConfig serviceTier'.split(
    ' ',
  ),
);
const knownGenerationFields = new Set(
  `temperature topP topK candidateCount maxOutputTokens stopSequences responseLogprobs logprobs presencePenalty
  frequencyPenalty seed responseMimeType responseSchema responseJsonSchema routingConfig modelConfig responseModalities
  mediaResolution speechConfig thinkingConfig audioTimestamp enableAffectiveDialog imageConfig`.split(/\s+/),
);
const learnMore = 'Learn more: https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/gemini';

/** The error for the first rule of generateContent that a body violates. */
export function checkVertexRequest(body: JsonObject): Refusal | undefined {
  return (
    checkFields(body, knownFields) ??
    checkGeneration(body.generationConfig) ??
    checkSystem(body.systemInstruction) ??
    checkContents(body.contents)
  );
}

function checkFields(object: JsonObject, known: ReadonlySet<string>, at?: string): Refusal | undefined {
  const [unknown] = unknownKeys(object, known);
  if (unknown === undefined) return undefined;
  const place = at === undefined ? '' : ` at '${at}'`;
  const description = `Invalid JSON payload received. Unknown name "${unknown}"${place}: Cannot find field.`;
  return vertexError(400, description, [
    { '@type': 'type.googleapis.com/google.rpc.BadRequest', fieldViolations: [{ description }] },
  ]);
}

function checkGeneration(config: unknown): Refusal | undefined {
  if (config === undefined) return undefined;
  if (!isObject(config)) return wrongType('generation_config');
  return (
    checkFields(config, knownGenerationFields, 'generation_config') ??
    checkTokenLimit(config.maxOutputTokens) ??
    checkSampling(config) ??
    checkStop(config.stopSequences)
  );
}

function checkTokenLimit(maxOutputTokens: unknown): Refusal | undefined {
  if (maxOutputTokens === undefined || isPositiveInteger(maxOutputTokens)) return undefined;
  if (!Number.isInteger(maxOutputTokens)) return wrongType('generation_config.max_output_tokens');
  return unable(
    `it has a maxOutputTokens value of ${maxOutputTokens} but the supported range is from 1 (inclusive) to 65537 (exclusive). Update the value and try again.`,
  );
}

/** A range: the smallest accepted value, and the bound that all values are below. */
const ranges = [
  ['temperature', 0, 2.0001],
  ['topP', 0, 1.0001],
  ['frequencyPenalty', -2, 2],
  ['presencePenalty', -2, 2],
] as const;

function checkSampling(config: JsonObject): Refusal | undefined {
  for (const [name, min, end] of ranges) {
    const value = config[name];
    if (value === undefined) continue;
    if (typeof value !== 'number') return wrongType(`generation_config.${name}`);
    if (value >= min && value < end) continue;
    return unable(
      `it has a ${name} value of ${value} but the supported range is from ${min} (inclusive) to ${end} (exclusive). Update the value and try again.`,
    );
  }
  const { seed } = config;
  return seed === undefined || seed === Number(seed) >> 0 ? undefined : wrongType('generation_config.seed');
}

const maxStops = 5;

function checkStop(sequences: unknown): Refusal | undefined {
  if (sequences === undefined) return undefined;
  if (!Array.isArray(sequences) || sequences.some((text) => typeof text !== 'string' || text === ''))
    return wrongType('generation_config.stop_sequences');
  return sequences.length > maxStops
    ? unable(`it has ${sequences.length} stop sequences but the supported number is at most ${maxStops}.`)
    : undefined;
}

function checkSystem(system: unknown): Refusal | undefined {
  if (system === undefined) return undefined;
  return isObject(system) ? checkParts(system.parts, 'system_instruction') : wrongType('system_instruction');
}

function checkContents(contents: unknown): Refusal | undefined {
  if (contents !== undefined && !Array.isArray(contents)) return wrongType('contents');
  if (contents === undefined || contents.length === 0) {
    return unable(`at least one contents field is required. ${learnMore}`);
  }
  for (const [index, content] of contents.entries()) {
    const refusal = checkContent(content, `contents[${index}]`);
    if (refusal !== undefined) return refusal;
  }
  return checkOrder(contents);
}

function checkContent(content: unknown, at: string): Refusal | undefined {
  if (!isObject(content)) return wrongType(at);
  if (content.role !== 'user' && content.role !== 'model') {
    return vertexError(400, 'Please use a valid role: user, model.');
  }
  return checkFields(content, new Set(['role', 'parts']), at) ?? checkParts(content.parts, at);
}

function checkParts(parts: unknown, at: string): Refusal | undefined {
  if (parts !== undefined && !Array.isArray(parts)) return wrongType(`${at}.parts`);
  if (parts === undefined || parts.length === 0) {
    return unable(`it must include at least one parts field, which describes the prompt input. ${learnMore}`);
  }
  for (const [index, part] of parts.entries()) {
    const place = `${at}.parts[${index}]`;
    if (!isObject(part)) return wrongType(place);
    if (Object.keys(part).length === 0) return unable(`it must have a text parameter. ${learnMore}`);
    if (part.text !== undefined && typeof part.text !== 'string') return wrongType(`${place}.text`);
    if (part.text === '') {
      return unable(
        `it has an empty text parameter. Add a value to the parameter and try again. ${learnMore}`,
      );
    }
  }
  return undefined;
}

function checkOrder(contents: { role: string }[]): Refusal | undefined {
  if (repeatedRoleAt(contents) !== -1) {
    return vertexError(400, 'Please ensure that multiturn requests alternate between user and model.');
  }
  if (contents.at(-1)?.role === 'user') return undefined;
  return vertexError(
    400,
    contents.length === 1
      ? 'Please ensure that single turn requests end with a user role or the role field is empty.'
      : 'Please ensure that multiturn requests end with a user role or a function response.',
  );
}

function unable(why: string): Refusal {
  return vertexError(400, `Unable to submit request because ${why}`);
}

function wrongType(at: string): Refusal {
  return vertexError(400, `Invalid value at '${at}': unexpected type.`);
}
