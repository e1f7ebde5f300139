import { z } from 'zod';
import type { JsonObject } from '../../../shared/json/json.js';
import { firstRefusal, type Refusal, snakeCase } from '../refusal.js';
import { bracketed, type Complaints, checkShape, json, type Path, text, unread } from '../shape.js';
import { unable, unknownName, vertexError, wrongType } from './errors.js';

const learnMore = 'Learn more: https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/gemini';

/** The error for the first rule of generateContent that a body violates. */
export function checkVertexRequest(body: JsonObject): Refusal | undefined {
  return checkShape(bodyShape, body, vertexComplaints) ?? checkValues(body as VertexBody);
}

function checkValues({ generationConfig = {}, systemInstruction, contents = [] }: VertexBody) {
  const refusal = checkRanges(generationConfig);
  if (refusal !== undefined) return refusal;
  if (contents.length === 0) return unable(`at least one contents field is required. ${learnMore}`);
  return (
    (systemInstruction && checkParts(systemInstruction, 'system_instruction')) ??
    firstRefusal(contents, (content, index) => checkParts(content, `contents[${index}]`)) ??
    checkOrder(contents)
  );
}

/** The smallest accepted value, and the bound that all values are below. */
const ranges = [
  { name: 'maxOutputTokens', min: 1, end: 65_537 },
  { name: 'temperature', min: 0, end: 2.0001 },
  { name: 'topP', min: 0, end: 1.0001 },
  { name: 'frequencyPenalty', min: -2, end: 2 },
  { name: 'presencePenalty', min: -2, end: 2 },
] as const;

function checkRanges(config: NonNullable<VertexBody['generationConfig']>): Refusal | undefined {
  return firstRefusal(ranges, ({ name, min, end }) => {
    const { [name]: value = min } = config;
    if (value >= min && value < end) return undefined;
    return unable(
      `it has a ${name} value of ${value} but the supported range is from ${min} (inclusive) to ${end} (exclusive). Update the value and try again.`,
    );
  });
}

/** A content has parts, and each of them one of the fields for data. */
function checkParts({ parts = [] }: { parts?: VertexPart[] | undefined }, at: string): Refusal | undefined {
  if (parts.length === 0) {
    return unable(`it must include at least one parts field, which describes the prompt input. ${learnMore}`);
  }
  return firstRefusal(parts, ({ text, inlineData, functionCall, functionResponse }, index) => {
    const given = [text, inlineData, functionCall, functionResponse].filter((data) => data !== undefined);
    if (given.length === 0) return unable(`it must have a text parameter. ${learnMore}`);
    if (given.length > 1) return wrongType(`${at}.parts[${index}]`);
    if (text !== '') return undefined;
    return unable(`it has an empty text parameter. Add a value to the parameter and try again. ${learnMore}`);
  });
}

function checkOrder(contents: NonNullable<VertexBody['contents']>): Refusal | undefined {
  const isRepeated = contents.some((content, index) => {
    const before = contents[index - 1];
    return content.role === before?.role && !before.parts?.some(({ functionResponse }) => functionResponse);
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

const part = z.strictObject({
  text: text.optional(),
  inlineData: z.strictObject({ mimeType: text, data: text }).optional(),
  functionCall: z.strictObject({ id: text.optional(), name: text, args: json.optional() }).optional(),
  functionResponse: z.strictObject({ id: text.optional(), name: text, response: json }).optional(),
  thoughtSignature: text.optional(),
  thought: z.boolean().optional(),
});
const content = z.strictObject({ role: z.enum(['user', 'model']), parts: z.array(part).optional() });

const declaration = z.strictObject({
  name: text,
  description: text.optional(),
  parametersJsonSchema: json.optional(),
});
const functionCallingConfig = z
  .strictObject({
    mode: z.enum(['AUTO', 'ANY', 'NONE', 'VALIDATED']),
    allowedFunctionNames: z.array(text).optional(),
  })
  .refine(({ mode, allowedFunctionNames: names }) => mode === 'ANY' || names === undefined);
const number = z.number().optional();
const generationConfig = z
  .strictObject({
    maxOutputTokens: z.int().optional(),
    temperature: number,
    topP: number,
    frequencyPenalty: number,
    presencePenalty: number,
    seed: z.int32().optional(),
    stopSequences: z.array(text.min(1)).max(5).optional(),
    responseMimeType: z.enum(['text/plain', 'application/json']).optional(),
    responseJsonSchema: json.optional(),
    thinkingConfig: z
      .strictObject({
        thinkingLevel: z.enum(['MINIMAL', 'LOW', 'MEDIUM', 'HIGH']).optional(),
        includeThoughts: z.boolean().optional(),
      })
      .optional(),
    ...unread(`topK candidateCount responseLogprobs logprobs responseSchema routingConfig modelConfig
      responseModalities mediaResolution speechConfig audioTimestamp enableAffectiveDialog imageConfig`),
  })
  .refine(({ responseMimeType: type, responseJsonSchema: schema }) => !schema || type === 'application/json');

/** The token that asks for a part of a reply (`Candidate.continuationToken` of the SDK), and that part. */
export const tokenOf = (hop: number): string => Buffer.from(String(hop)).toString('base64');
export const hopOf = (token: unknown = ''): number => Number(Buffer.from(String(token), 'base64').toString());

/** A body of generateContent, as in Vertex AI's reference. */
const bodyShape = z.strictObject({
  generationConfig: generationConfig.optional(),
  tools: z.array(z.strictObject({ functionDeclarations: z.array(declaration).min(1) })).optional(),
  toolConfig: z.strictObject({ functionCallingConfig }).optional(),
  systemInstruction: z.strictObject({ role: text.optional(), parts: z.array(part).optional() }).optional(),
  contents: z.array(content).optional(),
  continuationToken: text.refine((token) => hopOf(token) > 0).optional(),
  ...unread('safetySettings labels cachedContent modelArmorConfig serviceTier'),
});

export type VertexBody = z.output<typeof bodyShape>;
export type VertexPart = z.output<typeof part>;

/** Vertex AI's words for a body of the wrong shape. */
const vertexComplaints: Complaints = {
  unknown: (path, [key = '']) => unknownName(key, path.length === 0 ? undefined : placeOf(path)),
  wrong(path, value, { code }) {
    if (path.at(-1) === 'role') return vertexError(400, 'Please use a valid role: user, model.');
    if (code !== 'too_big' || !Array.isArray(value)) return wrongType(placeOf(path));
    return unable(`it has ${value.length} stop sequences but the supported number is at most 5.`);
  },
};

const placeOf = (path: Path): string => snakeCase(bracketed(path));
