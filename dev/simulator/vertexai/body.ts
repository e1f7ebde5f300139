import type { Part, Turn } from '../../../shared/conversation.js';
import { givenFields, isObject, type JsonObject } from '../../../shared/json/json.js';
import { inputOf } from '../compose.js';
import { contentOf } from '../frames.js';
import { readImage } from '../part-rules.js';
import { schemasIn } from '../schemas.js';
import { sign } from '../seals.js';
import * as must from '../shape.js';
import {
  type CallParameters,
  type Fault,
  firstFault,
  type PartRules,
  type Refusal,
  type Reply,
} from '../wire-format.js';
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

/**
 * The conversation of a valid body. Calls without ids get `call_` and their number, and responses without ids those of
 * the calls before them that have their names, in order.
 */
export function readVertexTurns({ systemInstruction: system, contents = [] }: VertexBody): Turn[] {
  const names: string[] = [];
  let responses = 0;
  const idOf = ({ functionCall, functionResponse }: VertexPart): string => {
    const own = functionCall?.id ?? functionResponse?.id;
    if (own !== undefined) return own;
    if (functionCall !== undefined) return `call_${names.push(functionCall.name)}`;
    const name = names[responses];
    responses += functionResponse === undefined ? 0 : 1;
    return name === functionResponse?.name ? `call_${responses}` : 'of another call';
  };
  const roles = { system: 'system', user: 'user', model: 'assistant' } as const;
  return [...(system ? [{ ...system, role: 'system' as const }] : []), ...contents].map(
    ({ role, parts = [] }) => ({
      role: roles[role],
      content: contentOf(parts.flatMap((part) => [...signatureOf(part), readPart(part, idOf(part))])),
    }),
  );
}

const signatureOf = ({ thoughtSignature: data }: VertexPart): Part[] =>
  data === undefined ? [] : [{ type: 'opaque', provider: 'vertexai', data }];

function readPart({ text = '', inlineData, functionCall, functionResponse }: VertexPart, id: string): Part {
  if (inlineData !== undefined) return readImage(inlineData.mimeType, inlineData.data);
  if (functionCall !== undefined) {
    const { name, args = {} } = functionCall;
    return { type: 'tool_call', id, name, arguments: JSON.stringify(args) };
  }
  if (functionResponse === undefined) return { type: 'text', text };
  const { response } = functionResponse;
  const isError = 'error' in response;
  const result = isError ? response.error : 'output' in response ? response.output : response;
  const content = typeof result === 'string' ? result : JSON.stringify(result);
  return { type: 'tool_result', callId: id, content, ...(isError && { isError }) };
}

const efforts = { MINIMAL: 'minimal', LOW: 'low', MEDIUM: 'medium', HIGH: 'high' } as const;

/** The parameters of a valid body. */
export function readVertexParameters({
  tools,
  toolConfig,
  generationConfig = {},
  continuationToken,
}: VertexBody): CallParameters {
  const { stopSequences: stop, thinkingConfig, responseMimeType: type, ...config } = generationConfig;
  const { responseJsonSchema: schema, ...sampling } = config;
  const { mode, allowedFunctionNames: [name] = [] } = toolConfig?.functionCallingConfig ?? {};
  const any = name === undefined ? 'required' : { name };
  const choices = { AUTO: 'auto', VALIDATED: 'auto', NONE: 'none', ANY: any } as const;
  const json = type === 'application/json' ? ({ type: 'json_object' } as const) : undefined;
  return givenFields({
    stop,
    ...sampling,
    tools: tools
      ?.flatMap(({ functionDeclarations }) => functionDeclarations)
      .map(({ parametersJsonSchema: parameters, ...tool }) => ({
        ...tool,
        ...(parameters && { parameters }),
      })),
    toolChoice: mode && choices[mode],
    format: schema ? ({ type: 'json_schema', schema } as const) : json,
    reasoningEffort: thinkingConfig?.thinkingLevel && efforts[thinkingConfig.thinkingLevel],
    showsThinking: thinkingConfig?.includeThoughts,
    hop: hopOf(continuationToken),
  });
}

/** The calls of a reply; one that the token limit cut before its arguments is not there. */
export const writeVertexCalls = ({ calls, ending, isSigned, thoughts }: Reply): object[] =>
  calls
    .filter((call) => call.arguments !== '')
    .map((call, index) => ({
      functionCall: { name: call.name, args: inputOf(call, ending) },
      ...((isSigned || thoughts.length > 0) && index === 0 && { thoughtSignature: sign(call) }),
    }));
