import type { Part, Turn } from '../../../shared/conversation.js';
import { givenFields } from '../../../shared/json/json.js';
import { contentOf } from '../blocks.js';
import { inputOf } from '../compose.js';
import type { CallParameters, Reply } from '../exchange.js';
import { readImage } from '../image.js';
import { sign } from '../seals.js';
import { hopOf, type VertexBody, type VertexPart } from './rules.js';

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
