import type * as Google from '@google/genai';
import { FunctionCallingConfigMode } from '@google/genai';
import { z } from 'zod';
import {
  imagesOf,
  type OpaquePart,
  type Part,
  partsOf,
  type ToolResultPart,
  textOfResult,
} from '../../../shared/conversation.js';
import { Failure } from '../../../shared/failures.js';
import { givenFields, readJson, readObject } from '../../../shared/json/json.js';
import { fitSchema } from '../../../shared/models/json-schema.js';
import type { ModelParameters, ReplyFormat } from '../../../shared/models/model-parameters.js';
import { type AlternatingTurn, callsIn, toAlternating } from '../../../shared/protocol/alternating-turns.js';
import { argumentsOf, type ProviderRequest } from '../provider.js';
import { parseExactly } from '../reply/exact-json.js';

/** A request as the SDK takes it. */
export function toBody({ turns, model, maxOutputTokens, parameters = {} }: ProviderRequest) {
  // The model becomes part of the address; the SDK refuses only some of what does not belong there.
  if (!/^[\w.@:/-]+$/.test(model) || model.includes('..')) throw new Failure('provider_rejected');
  const { system, turns: alternating } = toAlternating(turns);
  const {
    temperature,
    topP,
    topK,
    stop: stopSequences,
    seed,
    frequencyPenalty,
    presencePenalty,
  } = parameters;
  const { reasoningEffort: effort, format } = parameters;
  return {
    model,
    contents: toContents(alternating, model),
    config: {
      ...givenFields({
        maxOutputTokens,
        temperature,
        topP,
        topK,
        stopSequences,
        seed,
        frequencyPenalty,
        presencePenalty,
      }),
      ...(effort && { thinkingConfig: { thinkingLevel: effort.toUpperCase() as Google.ThinkingLevel } }),
      ...(format && toFormat(format)),
      ...toTools(parameters),
      ...(system.length > 0 && { systemInstruction: { parts: system.map((text) => ({ text })) } }),
    },
  };
}

function toFormat(format: ReplyFormat): Google.GenerateContentConfig {
  const responseMimeType = 'application/json';
  if (format.type === 'json_object') return { responseMimeType };
  // The only place for a description of the whole.
  const schema = { ...givenFields({ description: format.description }), ...format.schema };
  return { responseMimeType, responseJsonSchema: fitSchema('vertexai', schema, 'format').schema };
}

function toTools({ tools, toolChoice }: ModelParameters): Google.GenerateContentConfig {
  if (tools === undefined) return {};
  const functionDeclarations = tools.map(({ name, description, parameters }) => {
    const parametersJsonSchema = parameters && fitSchema('vertexai', parameters, 'tool').schema;
    return { name, ...givenFields({ description, parametersJsonSchema }) };
  });
  const functionCallingConfig =
    typeof toolChoice === 'object'
      ? { mode: FunctionCallingConfigMode.ANY, allowedFunctionNames: [toolChoice.name] }
      : toolChoice && { mode: modes[toolChoice] };
  return {
    tools: [{ functionDeclarations }],
    ...(functionCallingConfig && { toolConfig: { functionCallingConfig } }),
  };
}

const modes = {
  auto: FunctionCallingConfigMode.AUTO,
  none: FunctionCallingConfigMode.NONE,
  required: FunctionCallingConfigMode.ANY,
};

/** Results stand in a content of their own: with a text behind them newer models answer 400. */
function toContents(turns: readonly AlternatingTurn[], model: string): Google.Content[] {
  return turns.flatMap((turn, place) => {
    const parts = partsOf(turn);
    if (turn.role === 'assistant') return [{ role: 'model', parts: toModelParts(parts, model) }];
    const names = new Map(callsIn(turns.slice(place - 1, place)).map(({ id, name }) => [id, name]));
    const results = parts.filter((part) => part.type === 'tool_result');
    // No ids are sent, because models before Gemini 3 refuse them: the order says which call a result belongs to.
    const responses = results.map((result) => ({
      functionResponse: {
        ...givenFields({ name: names.get(result.callId), parts: toResponseParts(result) }),
        response: toResponse(result),
      },
    }));
    return [responses, parts.flatMap(toUserPart)]
      .filter(({ length }) => length > 0)
      .map((own) => ({ role: 'user', parts: own }));
  });
}

/** Stands for a signature that is missing. https://ai.google.dev/gemini-api/docs/thought-signatures */
const skipValidation = 'skip_thought_signature_validator';

function toModelParts(parts: readonly Part[], model: string): Google.Part[] {
  const sent: Google.Part[] = [];
  // Only the first of parallel calls has a signature.
  let ofCall: string | undefined = skipValidation;
  for (const part of parts) {
    if (part.type === 'text') sent.push({ text: part.text });
    const signed = part.type === 'opaque' ? readSigned(part, model) : undefined;
    if (signed?.of === 'call') ofCall = signed.thoughtSignature;
    if (signed?.of === 'text') signText(sent, signed.thoughtSignature);
    if (part.type !== 'tool_call') continue;
    const functionCall = { name: part.name, args: toStruct(argumentsOf(part)) };
    sent.push({ functionCall, ...givenFields({ thoughtSignature: ofCall }) });
    ofCall = undefined;
  }
  return sent;
}

/** Without a text before it that is not signed, it stands on an empty one, as it does in streams. */
function signText(sent: Google.Part[], thoughtSignature: string): void {
  const last = sent.at(-1);
  if (last?.text && last.thoughtSignature === undefined) last.thoughtSignature = thoughtSignature;
  else sent.push({ text: '', thoughtSignature });
}

const toStruct = (text: string) => parseExactly(text) as Record<string, unknown>;

/** A signature as a client sends it back, which may be anything. */
const signature = z.object({
  thoughtSignature: z.string().regex(/^[\w+/=-]+$/),
  of: z.enum(['call', 'text']),
});

/** The block of a signature on the tape: a call's comes before the call, a text's behind the text. */
export const toOpaque = (block: z.infer<typeof signature>) => ({ data: JSON.stringify(block) });

/** Not every client keeps the name of the model. */
function readSigned({ provider, model, data }: OpaquePart, asked: string) {
  if (provider !== 'vertexai' || (model ?? asked) !== asked) return undefined;
  return signature.safeParse(readJson(data)).data;
}

/** Models before Gemini 3 refuse images there. https://ai.google.dev/gemini-api/docs/function-calling#multimodal */
function toResponseParts(result: ToolResultPart): Google.Part[] | undefined {
  const images = imagesOf([{ content: [result] }]).flatMap(toUserPart);
  return images.length > 0 ? images : undefined;
}

function toResponse(result: ToolResultPart): Record<string, unknown> {
  const content = textOfResult(result);
  if (result.isError) return { error: content };
  if (typeof result.content !== 'string') return { output: content };
  const object = content.length <= maxParsedLength ? readObject(content) : undefined;
  // These two keys have a meaning of their own in a response.
  const isResponse = object && !('output' in object) && !('error' in object);
  return isResponse && !isDeeperThan(maxDepth, object) ? toStruct(content) : { output: content };
}

/** Other results are sent as texts. Parsing a longer one would hold the process up. */
export const maxParsedLength = 65_536;
/** Google's parsers take no more than a hundred levels, of which each of JSON needs up to three. */
const maxDepth = 32;

const isDeeperThan = (depth: number, value: unknown): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (depth === 0 || Object.values(value).some((inner) => isDeeperThan(depth - 1, inner)));

function toUserPart(part: Part): Google.Part[] {
  if (part.type === 'text') return [{ text: part.text }];
  if (part.type !== 'image' || 'url' in part) return [];
  return [{ inlineData: { mimeType: part.mediaType, data: part.data ?? '' } }];
}
