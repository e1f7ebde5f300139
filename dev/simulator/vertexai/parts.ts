import { type Part, partsOf, type Turn } from '../../../shared/conversation.js';
import { contentOf } from '../blocks.js';
import { inputOf } from '../compose-calls.js';
import { readImage } from '../image.js';
import { sign } from '../signature.js';
import type { CallParameters, Reply } from '../wire-format.js';
import type { VertexBody, VertexContent, VertexPart } from './shapes.js';

/**
 * The turns of contents. Calls have no ids here: they get `call_` and their number, and responses those of the calls
 * before them that have their names, in order.
 */
export function readVertexTurns(contents: readonly VertexContent[]): Turn[] {
  const names: string[] = [];
  let responses = 0;
  const idOf = ({ functionCall, functionResponse }: VertexPart): string => {
    if (functionCall !== undefined) return `call_${names.push(functionCall.name)}`;
    const name = names[responses];
    responses += functionResponse === undefined ? 0 : 1;
    return name === functionResponse?.name ? `call_${responses}` : 'of another call';
  };
  return contents.map(({ role, parts }) => ({
    role: role === 'model' ? 'assistant' : 'user',
    content: contentOf(parts.flatMap((part) => [...signatureOf(part), readPart(part, idOf(part))])),
  }));
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
  const said = isError ? response.error : 'output' in response ? response.output : response;
  const content = typeof said === 'string' ? said : JSON.stringify(said);
  return { type: 'tool_result', callId: id, content, ...(isError && { isError }) };
}

/** The tools of a body, and the form of the reply that it asks for. */
export function readVertexTools({ tools, toolConfig, generationConfig = {} }: VertexBody): CallParameters {
  const { responseJsonSchema: schema, responseMimeType: type, thinkingConfig } = generationConfig;
  const { mode, allowedFunctionNames: [name] = [] } = toolConfig?.functionCallingConfig ?? {};
  const choices = {
    AUTO: 'auto',
    VALIDATED: 'auto',
    NONE: 'none',
    ANY: name === undefined ? 'required' : { name },
  } as const;
  return {
    tools: tools
      ?.flatMap(({ functionDeclarations }) => functionDeclarations)
      .map(({ parametersJsonSchema: parameters, ...tool }) => ({
        ...tool,
        ...(parameters && { parameters }),
      })),
    toolChoice: mode && choices[mode],
    format:
      schema !== undefined
        ? { type: 'json_schema', schema }
        : type === 'application/json'
          ? { type: 'json_object' }
          : undefined,
    reasoningEffort: thinkingConfig?.thinkingLevel?.toLowerCase(),
  };
}

/** The documented value for calls whose signature is not known. */
const skipped = 'skip_thought_signature_validator';

/** Whether a signature in a turn is not the one of the call behind it. */
export const hasForeignVertexSignature = (turn: Turn): boolean =>
  partsOf(turn).some((part, index, parts) => {
    const next = parts[index + 1];
    return (
      part.type === 'opaque' &&
      part.data !== skipped &&
      !(next?.type === 'tool_call' && part.data === sign(next.name + next.arguments))
    );
  });

/** The calls of a reply; one that the token limit cut before its arguments is not there. */
export const writeVertexCalls = ({ calls, ending, isSigned }: Reply): object[] =>
  calls
    .filter((call) => call.arguments !== '')
    .map((call, index) => ({
      functionCall: { name: call.name, args: inputOf(call, ending) },
      ...(isSigned && index === 0 && { thoughtSignature: sign(`${call.name}${call.arguments}`) }),
    }));
