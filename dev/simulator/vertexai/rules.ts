import { isObject, type JsonObject } from '../../../shared/json/json.js';
import type { Fault, PartRules } from '../part-rules.js';
import { firstFault, type Refusal } from '../refusal.js';
import { schemasIn } from '../schemas.js';
import * as must from '../shape.js';
import { vertexErrors } from './errors.js';

const imageTypes = new Set(['image/png', 'image/jpeg', 'image/webp']);

/** Vertex AI's rules for tools, formats and parts. */
export const vertexPartRules: PartRules = {
  toolName: /^[a-zA-Z_][\w.:-]{0,127}$/,
  has: ['one tool of a name', 'an offered choice', 'results alone', 'signed calls'],
  schema: (root) =>
    firstFault(schemasIn(root), ({ schema, path }) =>
      isObject(schema) ? schemaFault(schema, path) : undefined,
    ),
  image: (_data, mediaType, type) =>
    type === undefined || !imageTypes.has(mediaType) ? 'an image of another type' : undefined,
  places: {
    choice: ['toolConfig', 'functionCallingConfig', 'allowedFunctionNames'],
    format: ['generationConfig', 'responseJsonSchema'],
    tool: (index) => ['tools', 0, 'functionDeclarations', index],
    parameters: ['parameters'],
    part: (turn, part) => ['contents', turn, 'parts', part],
  },
};

/**
 * What Gemini refuses in one schema: other fields beside `$ref`, `required` (probelabs/probe#569), `enum`
 * (sbroenne/mcp-server-excel#607, elastic/kibana#286301) and `items` (router-for-me/CLIProxyAPI#5292).
 */
function schemaFault(schema: JsonObject, path: readonly string[]): Fault | undefined {
  const { properties, required = [], type, enum: values, $ref } = schema;
  const other = Object.keys(schema).find((key) => !key.startsWith('$'));
  if (typeof $ref === 'string' && other !== undefined) return [path, `no ${other} beside $ref`];
  const unnamed = [required].flat().find((name) => !Object.hasOwn(Object(properties), String(name)));
  if (unnamed !== undefined) return [[...path, 'required'], 'names of properties'];
  const isEmpty = Array.isArray(values) && (values.length === 0 || values.includes(''));
  if (isEmpty) return [[...path, 'enum'], 'values that are not empty'];
  const isBare = [type].flat().includes('array') && !('items' in schema || 'prefixItems' in schema);
  return isBare ? [[...path, 'items'], 'a value'] : undefined;
}

export interface VertexPart {
  readonly text?: string;
  readonly inlineData?: { mimeType: string; data: string };
  readonly functionCall?: { id?: string; name: string; args?: JsonObject };
  readonly functionResponse?: { id?: string; name: string; response: JsonObject };
  readonly thoughtSignature?: string;
}

interface Declaration {
  readonly name: string;
  readonly description?: string;
  readonly parametersJsonSchema?: JsonObject;
}

/** A body of generateContent, as far as it is read. */
export interface VertexBody {
  readonly generationConfig?: {
    readonly maxOutputTokens?: number;
    readonly temperature?: number;
    readonly topP?: number;
    readonly frequencyPenalty?: number;
    readonly presencePenalty?: number;
    readonly seed?: number;
    readonly stopSequences?: string[];
    readonly responseMimeType?: string;
    readonly responseJsonSchema?: JsonObject;
    readonly thinkingConfig?: {
      thinkingLevel?: 'MINIMAL' | 'LOW' | 'MEDIUM' | 'HIGH';
      includeThoughts?: boolean;
    };
  };
  readonly tools?: { functionDeclarations: Declaration[] }[];
  readonly toolConfig?: {
    functionCallingConfig: { mode: 'AUTO' | 'ANY' | 'NONE' | 'VALIDATED'; allowedFunctionNames?: string[] };
  };
  readonly systemInstruction?: { parts?: VertexPart[] };
  readonly contents?: { role: 'user' | 'model'; parts?: VertexPart[] }[];
  readonly continuationToken?: string;
}

/** The token that asks for a part of a reply (`Candidate.continuationToken` of the SDK), and that part. */
export const tokenOf = (hop: number): string => Buffer.from(String(hop)).toString('base64');
export const hopOf = (token: unknown = ''): number => Number(Buffer.from(String(token), 'base64').toString());

const part = must.object('text inlineData functionCall functionResponse thoughtSignature thought');

const shape: must.Shape = {
  '': must.object(`generationConfig tools toolConfig systemInstruction contents continuationToken safetySettings labels
    cachedContent modelArmorConfig serviceTier`),
  generationConfig:
    must.object(`maxOutputTokens temperature topP frequencyPenalty presencePenalty seed stopSequences
    responseMimeType responseJsonSchema thinkingConfig topK candidateCount responseLogprobs logprobs responseSchema
    routingConfig modelConfig responseModalities mediaResolution speechConfig audioTimestamp enableAffectiveDialog
    imageConfig`),
  'generationConfig.maxOutputTokens': must.integer(1, 65_536),
  'generationConfig.temperature': must.number(0, 2),
  'generationConfig.topP': must.number(0, 1),
  'generationConfig.frequencyPenalty': must.number(-2, 1.999),
  'generationConfig.presencePenalty': must.number(-2, 1.999),
  'generationConfig.seed': must.integer(-(2 ** 31), 2 ** 31 - 1),
  'generationConfig.stopSequences': must.list(0, 5),
  'generationConfig.stopSequences.*!': must.someText,
  'generationConfig.responseMimeType': must.oneOf('text/plain application/json'),
  'generationConfig.thinkingConfig': must.object('thinkingLevel includeThoughts'),
  'generationConfig.thinkingConfig.thinkingLevel': must.oneOf('MINIMAL LOW MEDIUM HIGH'),
  'tools.*.functionDeclarations!': must.list(1),
  'tools.*.functionDeclarations.*!': must.object('name description parametersJsonSchema'),
  'toolConfig.functionCallingConfig.mode!': must.oneOf('AUTO ANY NONE VALIDATED'),
  continuationToken: must.someText,
  'systemInstruction.parts!': must.list(1),
  'systemInstruction.parts.*!': part,
  'systemInstruction.parts.*.text!': must.someText,
  'contents!': must.list(1),
  'contents.*!': must.object('role parts'),
  'contents.*.role!': must.oneOf('user model'),
  'contents.*.parts!': must.list(1),
  'contents.*.parts.*!': part,
  'contents.*.parts.*.text': must.someText,
};

/** The error for the first rule of generateContent that a body violates. */
export function checkVertexRequest(body: JsonObject): Refusal | undefined {
  const fault = must.findFault(body, shape) ?? findOtherFault(body as unknown as VertexBody);
  return fault && vertexErrors.wrong(...fault);
}

function findOtherFault({ generationConfig = {}, toolConfig, contents = [] }: VertexBody): Fault | undefined {
  const { responseMimeType: type, responseJsonSchema: schema } = generationConfig;
  if (schema && type !== 'application/json')
    return [['generationConfig'], 'the type of JSON beside a schema'];
  const { mode, allowedFunctionNames: names } = toolConfig?.functionCallingConfig ?? {};
  if (names && mode !== 'ANY') return [['toolConfig', 'functionCallingConfig'], 'the mode ANY beside names'];
  for (const [index, { parts = [] }] of contents.entries()) {
    const wrong = parts.findIndex(({ text, inlineData, functionCall, functionResponse }) => {
      return (
        [text, inlineData, functionCall, functionResponse].filter((data) => data !== undefined).length !== 1
      );
    });
    if (wrong !== -1) return [['contents', index, 'parts', wrong], 'one field of data'];
  }
  const isRepeated = contents.some(({ role }, index) => {
    const before = contents[index - 1];
    return role === before?.role && !before.parts?.some(({ functionResponse }) => functionResponse);
  });
  if (isRepeated) return [['contents'], 'roles that alternate'];
  return contents.at(-1)?.role === 'user' ? undefined : [['contents'], 'a turn of the user at the end'];
}
