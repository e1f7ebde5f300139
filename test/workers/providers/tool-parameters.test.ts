import { describe, expect, it } from 'vitest';
import { type ProviderId, providerIds } from '../../../shared/contracts/contract.js';
import type { Turn } from '../../../shared/conversation.js';
import type { ModelParameters } from '../../../shared/models/model-parameters.js';
import { startPlaying } from '../../support/playing-provider.js';
import { plain } from '../../support/provider-answers.js';
import { replyModes } from '../../support/providers.js';

const { play, sent } = await startPlaying();

const schema = { type: 'object', properties: { city: { type: 'string', minLength: 1 } }, required: ['city'] };
/** The schema as Claude takes it, and as Vertex AI does. */
const fitted = {
  ...schema,
  properties: { city: { type: 'string', description: 'minLength: 1' } },
  additionalProperties: false,
};
const fittedByGoogle = { ...schema, properties: { city: expect.objectContaining({ type: 'string' }) } };
const weather = { name: 'weather', description: 'Says how it is.', parameters: schema, strict: true };
const map = { additionalProperties: { type: 'string' } };
const clock = { name: 'clock', description: '', parameters: map };
const bell = { name: 'bell' };
const tools = [weather, clock, bell];

const functions = tools.map((tool) => ({ type: 'function', function: tool }));
const claudeTools = [
  { name: 'weather', description: 'Says how it is.', input_schema: fitted, strict: true },
  { name: 'clock', input_schema: { type: 'object', ...map }, eager_input_streaming: true },
  { name: 'bell', input_schema: { type: 'object', properties: {} }, eager_input_streaming: true },
];
const converse = (toolChoice?: object) => ({
  toolConfig: {
    tools: claudeTools.map(({ input_schema: json, eager_input_streaming: _, ...tool }) => ({
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
const calling = (functionCallingConfig: object) => ({
  tools: googleTools,
  toolConfig: { functionCallingConfig },
});
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

/** A request, and what it adds to the body at each provider. */
interface Asked extends Partial<Record<ProviderId, object>> {
  parameters: ModelParameters;
  turns?: Turn[];
  maxOutputTokens?: number;
}

const requests: Record<string, Asked> = {
  'nothing -> nothing': { parameters: {} },
  'all that can be told a model -> what it can be told, in its words': {
    maxOutputTokens: 77,
    parameters: {
      temperature: 0,
      topP: 0.25,
      stop: ['\u0000', '🎉\n'],
      seed: -7,
      frequencyPenalty: -2,
      presencePenalty: 1.5,
      reasoningEffort: 'minimal',
      verbosity: 'low',
    },
    openai: {
      max_tokens: 77,
      temperature: 0,
      top_p: 0.25,
      stop: ['\u0000', '🎉\n'],
      seed: -7,
      frequency_penalty: -2,
      presence_penalty: 1.5,
      reasoning_effort: 'minimal',
      verbosity: 'low',
    },
    anthropic: { max_tokens: 77, stop_sequences: ['\u0000', '🎉\n'] },
    bedrock: {
      inferenceConfig: { maxTokens: 77, temperature: 0, topP: 0.25, stopSequences: ['\u0000', '🎉\n'] },
    },
    vertexai: {
      generationConfig: {
        maxOutputTokens: 77,
        temperature: 0,
        topP: 0.25,
        stopSequences: ['\u0000', '🎉\n'],
        seed: -7,
        frequencyPenalty: -2,
        presencePenalty: 1.5,
        thinkingConfig: { thinkingLevel: 'MINIMAL' },
      },
    },
  },
  'tools, of which one is strict -> as each takes their schemas, without a choice': {
    parameters: { tools },
    openai: { tools: functions },
    anthropic: { tools: claudeTools },
    bedrock: converse(),
    vertexai: { tools: googleTools },
  },
  'one call at most -> said where there is a word for it': {
    parameters: { tools, parallelToolCalls: false },
    openai: { tools: functions, parallel_tool_calls: false },
    anthropic: { tools: claudeTools, tool_choice: { type: 'auto', disable_parallel_tool_use: true } },
    bedrock: converse(),
    vertexai: { tools: googleTools },
  },
  'a free choice -> said': {
    parameters: { tools, toolChoice: 'auto', parallelToolCalls: true },
    openai: { tools: functions, tool_choice: 'auto', parallel_tool_calls: true },
    anthropic: { tools: claudeTools, tool_choice: { type: 'auto' } },
    bedrock: converse({ auto: {} }),
    vertexai: calling({ mode: 'AUTO' }),
  },
  'the choice of one call -> said': {
    parameters: { tools, toolChoice: 'required', parallelToolCalls: false },
    openai: { tools: functions, tool_choice: 'required', parallel_tool_calls: false },
    anthropic: { tools: claudeTools, tool_choice: { type: 'any', disable_parallel_tool_use: true } },
    bedrock: converse({ any: {} }),
    vertexai: calling({ mode: 'ANY' }),
  },
  'the choice of a tool -> said': {
    parameters: { tools, toolChoice: { name: 'clock' } },
    openai: { tools: functions, tool_choice: { type: 'function', function: { name: 'clock' } } },
    anthropic: { tools: claudeTools, tool_choice: { type: 'tool', name: 'clock' } },
    bedrock: converse({ tool: { name: 'clock' } }),
    vertexai: calling({ mode: 'ANY', allowedFunctionNames: ['clock'] }),
  },
  'the choice of none -> said, or no tools': {
    parameters: { tools, toolChoice: 'none' },
    openai: { tools: functions, tool_choice: 'none' },
    anthropic: { tools: claudeTools, tool_choice: { type: 'none' } },
    vertexai: calling({ mode: 'NONE' }),
  },
  'the choice of none after calls -> said, or the tools, which Converse wants': {
    turns: called,
    parameters: { tools, toolChoice: 'none' },
    openai: { tools: functions, tool_choice: 'none' },
    anthropic: { tools: claudeTools, tool_choice: { type: 'none' } },
    bedrock: converse(),
    vertexai: calling({ mode: 'NONE' }),
  },
  'a choice without tools -> no choice': {
    parameters: { toolChoice: 'required', parallelToolCalls: false },
  },
  'calls without tools -> no tools, or some that stand for them': {
    turns: called,
    parameters: { toolChoice: 'required' },
    bedrock: {
      toolConfig: {
        tools: ['weather', 'clock'].map((name) => ({
          toolSpec: {
            name,
            description: expect.stringMatching(/\w/),
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
    bedrock: {
      outputConfig: {
        textFormat: {
          type: 'json_schema',
          structure: { jsonSchema: { name: 'n', schema: JSON.stringify(fitted) } },
        },
      },
    },
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
    vertexai: generation({ thinkingConfig: { thinkingLevel: 'XHIGH' } }),
  },
};

/** Beside the conversation, and the wish for a stream. */
const always: Record<ProviderId, object> = {
  openai: { max_tokens: 4096 },
  anthropic: { max_tokens: 4096 },
  bedrock: { inferenceConfig: { maxTokens: 4096 } },
  vertexai: generation({}),
};

const cases = providerIds.flatMap((provider) =>
  Object.entries(requests).map(([given, { [provider]: adds, ...asked }]) => ({
    provider,
    given,
    asked,
    adds,
  })),
);

describe.each(replyModes)('$mode', ({ stream }) => {
  it.each(cases)('$provider is asked for $given', async ({ provider, asked, adds }) => {
    await play(provider, plain[provider](), { stream, ...asked });
    const { model, messages, contents, stream: isStream, stream_options, ...body } = JSON.parse(sent());
    expect(body).toEqual({ ...always[provider], ...adds });
  });
});

it.each<[ProviderId, field: RegExp | undefined, ofCap: RegExp | undefined]>([
  ['openai', undefined, undefined],
  ['anthropic', /"max_tokens":32000\b/, /"max_tokens":8192\b/],
  ['bedrock', /"maxTokens":16000\b/, undefined],
  ['vertexai', undefined, undefined],
])('%s, no limit of the caller -> sends %s, and %s to a model that refuses that', async (id, ...limits) => {
  for (const [place, limit] of limits.entries()) {
    const omits = place === 1 ? { omits: new Set(['cap'] as const) } : {};
    await play(id, plain[id](), { stream: false, maxOutputTokens: null, ...omits });
    expect(/"max\w*tokens":\d+/i.exec(sent())?.[0] ?? '').toMatch(limit ?? /^$/);
  }
});
