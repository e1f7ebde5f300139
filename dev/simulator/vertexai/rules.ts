import { isObject, isPositiveInteger, type JsonObject, unknownKeys } from '../json.js';
import { firstRefusal, type Refusal } from '../refusal.js';
import { checkFieldsOf, checkShape } from '../shape.js';
import { unable, unknownName, vertexError, wrongType } from './errors.js';
import { bodyShape, partsShape, type VertexContent, vertexComplaints } from './shapes.js';

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
    checkFieldsOf(bodyShape, body, vertexComplaints) ??
    checkSystem(body.systemInstruction) ??
    checkContents(body.contents)
  );
}

function checkFields(object: JsonObject, known: ReadonlySet<string>, at?: string): Refusal | undefined {
  const [unknown] = unknownKeys(object, known);
  return unknown === undefined ? undefined : unknownName(unknown, at);
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

function checkTokenLimit(limit: unknown): Refusal | undefined {
  if (limit === undefined || isPositiveInteger(limit)) return undefined;
  if (!Number.isInteger(limit)) return wrongType('generation_config.max_output_tokens');
  return outOfRange(limit, { name: 'maxOutputTokens', min: 1, end: 65_537 });
}

/** The smallest accepted value, and the bound that all values are below. */
interface Range {
  readonly name: string;
  readonly min: number;
  readonly end: number;
}

const ranges: readonly Range[] = [
  { name: 'temperature', min: 0, end: 2.0001 },
  { name: 'topP', min: 0, end: 1.0001 },
  { name: 'frequencyPenalty', min: -2, end: 2 },
  { name: 'presencePenalty', min: -2, end: 2 },
];

function checkRange(value: unknown, { name, min, end }: Range): Refusal | undefined {
  if (value === undefined) return undefined;
  if (typeof value !== 'number') return wrongType(`generation_config.${name}`);
  if (value >= min && value < end) return undefined;
  return outOfRange(value, { name, min, end });
}

const outOfRange = (value: unknown, { name, min, end }: Range): Refusal =>
  unable(
    `it has a ${name} value of ${value} but the supported range is from ${min} (inclusive) to ${end} (exclusive). Update the value and try again.`,
  );

function checkSampling(config: JsonObject): Refusal | undefined {
  const { seed } = config;
  const refusal = firstRefusal(ranges, (range) => checkRange(config[range.name], range));
  if (refusal !== undefined || seed === undefined || seed === Number(seed) >> 0) return refusal;
  return wrongType('generation_config.seed');
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
  return (
    firstRefusal(contents, (content, index) => checkContent(content, `contents[${index}]`)) ??
    checkOrder(contents)
  );
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
  return checkShape(partsShape, parts, { at: [at, 'parts'], complaints: vertexComplaints });
}

function checkOrder(contents: VertexContent[]): Refusal | undefined {
  const isRepeated = contents.some((content, index) => {
    const before = contents[index - 1];
    return content.role === before?.role && !before.parts.some(({ functionResponse }) => functionResponse);
  });
  if (isRepeated) {
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
