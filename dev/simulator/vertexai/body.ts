import type { Part, Turn } from '../../../shared/conversation.js';
import { givenFields, isObject, type JsonObject } from '../../../shared/json/json.js';
import { inputOf } from '../compose.js';
import { contentOf } from '../frames.js';
import { readImage } from '../part-rules.js';
import { schemasIn } from '../schemas.js';
import { sign } from '../seals.js';
import { type CallParameters, type Fault, firstFault, type PartRules, type Reply } from '../wire-format.js';

const imageTypes = new Set(['image/png', 'image/jpeg', 'image/webp']);

/** Vertex AI's rules for tools, formats and parts. */
export const vertexPartRules: PartRules = {
  toolName: /^[a-zA-Z_][\w.:-]{0,127}$/,
  has: [
    'one tool of a name',
    'an offered choice',
    'results alone',
    'signed calls',
    'characters in texts',
    'the user last',
    'alternating roles',
  ],
  schema: (root) =>
    firstFault(schemasIn(root), ({ schema, path }) =>
      isObject(schema) ? schemaFault(schema, path) : undefined,
    ),
  image: (_data, mediaType, type) =>
    type === undefined || !imageTypes.has(mediaType) ? 'an image of another type' : undefined,
  places: {
    turns: ['contents'],
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
