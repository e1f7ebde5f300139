import { describe, expect, it } from 'vitest';
import { type ProviderId, providerIds } from '../../../shared/contract.js';
import type { Turn } from '../../../shared/conversation.js';
import type { ModelParameters } from '../../../shared/protocol/model-parameters.js';
import { startPlaying } from '../../support/playing-provider.js';
import { plain } from '../../support/provider-answers.js';
import { replyModes } from '../../support/providers.js';

const { play, sent } = await startPlaying();

const schema = { type: 'object', properties: { city: { type: 'string', minLength: 1 } }, required: ['city'] };
/** The schema as Claude takes it, and as Vertex AI does. */
const fitted = {
  ...{ ...schema, properties: { city: { type: 'string', description: 'minLength: 1' } } },
  additionalProperties: false,
};
const fittedByGoogle = { ...schema, properties: { city: expect.objectContaining({ type: 'string' }) } };
const weather = { name: 'weather', description: 'Says how it is.', parameters: schema, strict: true };
const map = { additionalProperties: { type: 'string' } };
const clock = { name: 'clock', description: '', parameters: map };
const bell = { name: 'bell' };
const tools = [weather, clock, bell];

const claudeTools = [
  { name: 'weather', description: 'Says how it is.', input_schema: fitted, strict: true },
  { name: 'clock', input_schema: { type: 'object', ...map } },
  { name: 'bell', input_schema: { type: 'object', properties: {} } },
];
const converse = (toolChoice?: object) => ({
  toolConfig: {
    tools: claudeTools.map(({ input_schema: json, ...tool }) => ({
      toolSpec: { ...tool, inputSchema: { json } },
    })),
    ...(toolChoice && { toolChoice }),
  },
});
const googleTools = [
  {
    functionDeclarations: [
      { name: 'weather', description: 'Says how it is.', parametersJsonSchema: fittedByGoogle },
      { name: 'clock', description: '', parametersJsonSchema: { type: 'object', ...map } },
      bell,
    ],
  },
];
const calling = (functionCallingConfig: object) => ({ toolConfig: { functionCallingConfig } });
const generation = (fields: object) => ({ generationConfig: { maxOutputTokens: 4096, ...fields } });

const called: Turn[] = [
  { role: 'user', content: 'Hello' },
  {
    role: 'assistant',
    content: ['weather', 'clock'].map((name) => ({ type: 'tool_call', id: name, name, arguments: '{}' })),
  },
  {
    role: 'user',
    content: ['weather', 'clock'].map((callId) => ({ type: 'tool_result', callId, content: 'seen' })),
  },
];
const described = { type: 'json_schema', name: 'answer', description: 'How it is.', schema } as const;

/** A request, and the fields of these names in each provider's; undefined for one that it has not. */
interface Asked extends Partial<Record<ProviderId, Record<string, unknown>>> {
  parameters: ModelParameters;
  turns?: Turn[];
}

const requests: Record<string, Asked> = {
  'tools, of which one is strict -> as each takes their schemas, without a choice': {
    parameters: { tools },
    openai: {
      tools: tools.map((tool) => ({ type: 'function', function: tool })),
      ...{ tool_choice: undefined, parallel_tool_calls: undefined },
    },
    anthropic: { tools: claudeTools, tool_choice: undefined },
    bedrock: converse(),
    vertexai: { tools: googleTools, toolConfig: undefined },
  },
  'one call at most -> said where there is a word for it': {
    parameters: { tools, parallelToolCalls: false },
    openai: { tool_choice: undefined, parallel_tool_calls: false },
    anthropic: { tool_choice: { type: 'auto', disable_parallel_tool_use: true } },
    bedrock: converse(),
    vertexai: { toolConfig: undefined },
  },
  'a free choice -> said': {
    parameters: { tools, toolChoice: 'auto', parallelToolCalls: true },
    openai: { tool_choice: 'auto', parallel_tool_calls: true },
    anthropic: { tool_choice: { type: 'auto' } },
    bedrock: converse({ auto: {} }),
    vertexai: calling({ mode: 'AUTO' }),
  },
  'the choice of one call -> said': {
    parameters: { tools, toolChoice: 'required', parallelToolCalls: false },
    openai: { tool_choice: 'required', parallel_tool_calls: false },
    anthropic: { tool_choice: { type: 'any', disable_parallel_tool_use: true } },
    bedrock: converse({ any: {} }),
    vertexai: calling({ mode: 'ANY' }),
  },
  'the choice of a tool -> said': {
    parameters: { tools, toolChoice: { name: 'clock' } },
    openai: { tool_choice: { type: 'function', function: { name: 'clock' } } },
    anthropic: { tool_choice: { type: 'tool', name: 'clock' } },
    bedrock: converse({ tool: { name: 'clock' } }),
    vertexai: calling({ mode: 'ANY', allowedFunctionNames: ['clock'] }),
  },
  'the choice of none -> said, or no tools': {
    parameters: { tools, toolChoice: 'none', parallelToolCalls: false },
    openai: { tool_choice: 'none' },
    anthropic: { tool_choice: { type: 'none' } },
    bedrock: { toolConfig: undefined },
    vertexai: calling({ mode: 'NONE' }),
  },
  'the choice of none after calls -> said, or the tools, which Converse wants': {
    turns: called,
    parameters: { tools, toolChoice: 'none' },
    anthropic: { tool_choice: { type: 'none' } },
    bedrock: converse(),
  },
  'a choice without tools -> no choice': {
    parameters: { toolChoice: 'required', parallelToolCalls: false },
    openai: { tools: undefined, tool_choice: undefined, parallel_tool_calls: undefined },
    anthropic: { tools: undefined, tool_choice: undefined },
    bedrock: { toolConfig: undefined },
    vertexai: { tools: undefined, toolConfig: undefined },
  },
  'calls without tools -> no tools, or some that stand for them': {
    turns: called,
    parameters: { toolChoice: 'required' },
    anthropic: { tools: undefined, tool_choice: undefined },
    bedrock: {
      toolConfig: {
        tools: ['weather', 'clock'].map((name) => ({
          toolSpec: {
            ...{ name, description: expect.stringMatching(/\w/) },
            inputSchema: { json: { type: 'object' } },
          },
        })),
      },
    },
  },
  'JSON by a schema, and effort -> both': {
    parameters: { format: described, reasoningEffort: 'high' },
    openai: {
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'answer', description: 'How it is.', schema },
      },
      reasoning_effort: 'high',
    },
    anthropic: {
      output_config: {
        format: { type: 'json_schema', schema: { description: 'How it is.', ...fitted } },
        effort: 'high',
      },
    },
    bedrock: {
      outputConfig: {
        textFormat: {
          type: 'json_schema',
          structure: {
            jsonSchema: { name: 'answer', description: 'How it is.', schema: JSON.stringify(fitted) },
          },
        },
        effort: 'high',
      },
    },
    vertexai: generation({
      responseMimeType: 'application/json',
      responseJsonSchema: { description: 'How it is.', ...fittedByGoogle },
      thinkingConfig: { thinkingLevel: 'HIGH' },
    }),
  },
  'JSON by a strict schema without a description -> strict where that can be said': {
    parameters: { format: { type: 'json_schema', name: 'n', schema, strict: true } },
    openai: { response_format: { type: 'json_schema', json_schema: { name: 'n', schema, strict: true } } },
    anthropic: { output_config: { format: { type: 'json_schema', schema: fitted } } },
    vertexai: generation({ responseMimeType: 'application/json', responseJsonSchema: fittedByGoogle }),
  },
  'JSON without a schema -> asked for where that can be': {
    parameters: { format: { type: 'json_object' } },
    openai: { response_format: { type: 'json_object' } },
    vertexai: generation({ responseMimeType: 'application/json' }),
  },
  'effort alone -> effort, of the highest kind too': {
    parameters: { reasoningEffort: 'xhigh' },
    openai: { reasoning_effort: 'xhigh' },
    anthropic: { output_config: { effort: 'xhigh' } },
    bedrock: { outputConfig: { effort: 'xhigh' } },
  },
};

const cases = providerIds.flatMap((provider) =>
  Object.entries(requests).flatMap(([given, { parameters, turns, [provider]: fields }]) =>
    fields === undefined ? [] : [{ provider, given, parameters, turns, fields }],
  ),
);

describe.each(replyModes)('$mode', ({ stream }) => {
  it.each(cases)('$provider is asked for $given', async ({ provider, parameters, turns, fields }) => {
    await play(provider, plain[provider](), { stream, parameters, ...(turns && { turns }) });
    const body = JSON.parse(sent());
    expect(Object.fromEntries(Object.keys(fields).map((name) => [name, body[name]]))).toEqual(fields);
  });
});
