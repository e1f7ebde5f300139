import type { ProviderId } from '../../../shared/contract.js';
import { type TestRequest, validRequest } from './requests.js';

type Schema = Record<string, unknown>;

/** A request in our words, which every provider can be asked. */
export interface Asked {
  model: string;
  stream?: boolean;
  /** The schemas of the arguments of tools, by their names; `undefined` means none. */
  tools?: Record<string, Schema | undefined>;
  choice?: 'required' | { name: string };
  format?: Schema;
  /** The words of the history behind the question: a reply's call, its signature and its result. */
  history?: { call: { name: string; arguments: string }; signed: unknown[]; result: string };
}

/** The same request in the words of each provider, as its SDK sends it. */
export function requestOf(provider: ProviderId, { model, stream = false, ...asked }: Asked): TestRequest {
  const request = validRequest(provider, { model, stream });
  return { ...request, body: { ...request.body, ...bodies[provider](asked) } };
}

const bodies: Record<ProviderId, (asked: Omit<Asked, 'model' | 'stream'>) => Record<string, unknown>> = {
  openai: ({ tools, choice, format, history }) => ({
    ...(tools && {
      tools: Object.entries(tools).map(([name, parameters]) => ({
        type: 'function',
        function: { name, ...(parameters && { parameters }) },
      })),
    }),
    ...(choice && {
      tool_choice: typeof choice === 'object' ? { type: 'function', function: choice } : choice,
    }),
    ...(format && {
      response_format: { type: 'json_schema', json_schema: { name: 'f', strict: false, schema: format } },
    }),
    ...(history && {
      messages: [
        { role: 'user', content: 'Hello' },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'c1', type: 'function', function: history.call }],
        },
        { role: 'tool', tool_call_id: 'c1', content: history.result },
      ],
    }),
  }),
  anthropic: ({ tools, choice, format, history }) => ({
    ...(tools && {
      tools: Object.entries(tools).map(([name, schema]) => ({
        name,
        input_schema: schema ?? { type: 'object', properties: {} },
      })),
    }),
    ...(choice && {
      tool_choice: typeof choice === 'object' ? { type: 'tool', ...choice } : { type: 'any' },
    }),
    ...(format && { output_config: { format: { type: 'json_schema', schema: format } } }),
    ...(history && {
      messages: [
        { role: 'user', content: 'Hello' },
        {
          role: 'assistant',
          content: [
            ...history.signed,
            {
              type: 'tool_use',
              id: 'c1',
              name: history.call.name,
              input: JSON.parse(history.call.arguments),
            },
          ],
        },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c1', content: history.result }] },
      ],
    }),
  }),
  bedrock: ({ tools, choice, format, history }) => ({
    ...(tools && {
      toolConfig: {
        tools: Object.entries(tools).map(([name, schema]) => ({
          toolSpec: { name, inputSchema: { json: schema ?? { type: 'object', properties: {} } } },
        })),
        ...(choice && { toolChoice: typeof choice === 'object' ? { tool: choice } : { any: {} } }),
      },
    }),
    ...(format && {
      outputConfig: {
        textFormat: {
          type: 'json_schema',
          structure: { jsonSchema: { name: 'f', schema: JSON.stringify(format) } },
        },
      },
    }),
    ...(history && {
      messages: [
        { role: 'user', content: [{ text: 'Hello' }] },
        {
          role: 'assistant',
          content: [
            ...history.signed.map((reasoningContent) => ({ reasoningContent })),
            {
              toolUse: {
                toolUseId: 'c1',
                name: history.call.name,
                input: JSON.parse(history.call.arguments),
              },
            },
          ],
        },
        { role: 'user', content: [{ toolResult: { toolUseId: 'c1', content: [{ text: history.result }] } }] },
      ],
    }),
  }),
  vertexai: ({ tools, choice, format, history }) => ({
    ...(tools && {
      tools: [
        {
          functionDeclarations: Object.entries(tools).map(([name, schema]) => ({
            name,
            ...(schema && { parametersJsonSchema: schema }),
          })),
        },
      ],
    }),
    ...(choice && {
      toolConfig: {
        functionCallingConfig: {
          mode: 'ANY',
          ...(typeof choice === 'object' && { allowedFunctionNames: [choice.name] }),
        },
      },
    }),
    ...(format && { generationConfig: { responseMimeType: 'application/json', responseJsonSchema: format } }),
    ...(history && {
      contents: [
        { role: 'user', parts: [{ text: 'Hello' }] },
        {
          role: 'model',
          parts: [
            {
              functionCall: { name: history.call.name, args: JSON.parse(history.call.arguments) },
              thoughtSignature: history.signed[0] ?? 'skip_thought_signature_validator',
            },
          ],
        },
        {
          role: 'user',
          parts: [{ functionResponse: { name: history.call.name, response: { output: history.result } } }],
        },
      ],
    }),
  }),
};
