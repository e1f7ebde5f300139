import { expect, it } from 'vitest';
import type { ModelParameters } from '../../../shared/models/model-parameters.js';
import { type BodyOptions, toBody } from '../../../workers/providers/anthropic/anthropic-body.js';
import { toInput } from '../../../workers/providers/bedrock/bedrock-body.js';
import type { ProviderRequest } from '../../../workers/providers/provider.js';
import { type Api, apis, call, hello, result, startApis, talk } from '../../support/apis.js';
import type { ProviderCommand } from '../../support/replies.js';

/** Parameters in, body out: the rest of the body beside the conversation, API by API. */

const send = await startApis();

const schema = { type: 'object', properties: { city: { type: 'string', minLength: 1 } }, required: ['city'] };
/** The schema as Claude takes it, and as Vertex AI does. */
const fitted = {
  ...schema,
  properties: { city: { type: 'string', description: 'minLength: 1' } },
  additionalProperties: false,
};
const fittedByGoogle = { ...schema, properties: { city: expect.objectContaining({ type: 'string' }) } };
const map = { additionalProperties: { type: 'string' } };
const tools = [
  { name: 'weather', description: 'Says how it is.', parameters: schema, strict: true },
  { name: 'clock', description: '', parameters: map },
  { name: 'bell' },
];
const claudeTools = [
  { name: 'weather', description: 'Says how it is.', input_schema: fitted, strict: true },
  { name: 'clock', input_schema: { type: 'object', ...map } },
  { name: 'bell', input_schema: { type: 'object', properties: {} } },
];
const googleTools = [
  { name: 'weather', description: 'Says how it is.', parametersJsonSchema: fittedByGoogle },
  { name: 'clock', description: '', parametersJsonSchema: { type: 'object', ...map } },
  { name: 'bell' },
];
const converseTools = claudeTools.map(({ input_schema: json, ...tool }) => ({
  toolSpec: { ...tool, inputSchema: { json } },
}));

/** The tools in the form of each API, with a choice in its words. */
const offered: Record<Api, (choice?: object) => object> = {
  chat: (choice) => ({ tools: tools.map((tool) => ({ type: 'function', function: tool })), ...choice }),
  responses: (choice) => ({
    tools: tools.map((tool) => ({ parameters: null, strict: false, ...tool, type: 'function' })),
    ...choice,
  }),
  anthropic: (choice) => ({
    tools: claudeTools.map((tool) => (tool.strict ? tool : { ...tool, eager_input_streaming: true })),
    ...(choice && { tool_choice: choice }),
  }),
  bedrock: (choice) => ({ toolConfig: { tools: converseTools, ...(choice && { toolChoice: choice }) } }),
  vertexai: (choice) => ({
    tools: [{ functionDeclarations: googleTools }],
    ...(choice && { toolConfig: { functionCallingConfig: choice } }),
  }),
};

const config = (fields: object) => ({ generationConfig: { maxOutputTokens: 4096, ...fields } });
/** The fields that every body of an API has. */
const always: Record<Api, object> = {
  chat: { max_tokens: 4096 },
  responses: { max_output_tokens: 4096, store: false },
  anthropic: { max_tokens: 4096 },
  bedrock: { inferenceConfig: { maxTokens: 4096 } },
  vertexai: config({}),
};

/** A request, and what it adds to the body of each API; `openai` of both of OpenAI's. */
interface Row extends Partial<Record<Api | 'openai', object | undefined>> {
  asked: Omit<ProviderCommand, 'model' | 'stream'>;
}

const calls = talk(
  ['weather', 'clock'].map((name) => call(name, name, '{}')),
  [result('weather'), result('clock')],
);
const told = { temperature: 0, topP: 0.25, seed: -7, frequencyPenalty: -2, presencePenalty: 1.5 };
const stop = ['\u0000', '🎉\n'];
const described = { type: 'json_schema', name: 'answer', description: 'How it is.', schema } as const;
const strict = { type: 'json_schema', name: 'n', schema, strict: true } as const;
const structure = (jsonSchema: object) => ({
  textFormat: {
    type: 'json_schema',
    structure: { jsonSchema: { schema: JSON.stringify(fitted), ...jsonSchema } },
  },
});
const json = (responseJsonSchema?: object) => ({ responseMimeType: 'application/json', responseJsonSchema });

const rows: Record<string, Row> = {
  'nothing -> nothing': { asked: { parameters: {} } },
  'all that can be told a model -> what it can be told, in its words': {
    asked: {
      maxOutputTokens: 77,
      parameters: { ...told, stop, reasoningEffort: 'minimal', verbosity: 'low' },
    },
    chat: {
      ...{ max_tokens: 77, temperature: 0, top_p: 0.25, stop, seed: -7, frequency_penalty: -2 },
      ...{ presence_penalty: 1.5, reasoning_effort: 'minimal', verbosity: 'low' },
    },
    responses: {
      ...{ max_output_tokens: 77, temperature: 0, top_p: 0.25, reasoning: { effort: 'minimal' } },
      text: { verbosity: 'low' },
    },
    anthropic: { max_tokens: 77, stop_sequences: stop },
    bedrock: { inferenceConfig: { maxTokens: 77, temperature: 0, topP: 0.25, stopSequences: stop } },
    vertexai: config({
      ...{ maxOutputTokens: 77, stopSequences: stop, ...told },
      thinkingConfig: { thinkingLevel: 'MINIMAL' },
    }),
  },
  'a limit of 1 -> a limit that it takes': {
    asked: { maxOutputTokens: 1 },
    chat: { max_tokens: 1 },
    responses: { max_output_tokens: 16 },
    anthropic: { max_tokens: 1 },
    bedrock: { inferenceConfig: { maxTokens: 1 } },
    vertexai: config({ maxOutputTokens: 1 }),
  },
  'calls without tools -> no tools, or some that stand for them': {
    asked: { turns: calls, parameters: { toolChoice: 'required' } },
    bedrock: {
      toolConfig: {
        tools: ['weather', 'clock'].map((name) => {
          const description = expect.stringMatching(/\w/);
          return { toolSpec: { name, description, inputSchema: { json: { type: 'object' } } } };
        }),
      },
    },
  },
  'a choice without tools -> no choice': {
    asked: { parameters: { toolChoice: 'required', parallelToolCalls: false } },
  },
  'JSON by a schema, and effort -> both': {
    asked: { parameters: { format: described, reasoningEffort: 'high' } },
    chat: {
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'answer', description: 'How it is.', schema },
      },
      reasoning_effort: 'high',
    },
    responses: { text: { format: { ...described, strict: false } }, reasoning: { effort: 'high' } },
    anthropic: {
      output_config: {
        format: { type: 'json_schema', schema: { description: 'How it is.', ...fitted } },
        effort: 'high',
      },
    },
    bedrock: {
      outputConfig: { ...structure({ name: 'answer', description: 'How it is.' }), effort: 'high' },
    },
    vertexai: config({
      ...json({ description: 'How it is.', ...fittedByGoogle }),
      thinkingConfig: { thinkingLevel: 'HIGH' },
    }),
  },
  'JSON by a strict schema without a description, and verbosity -> what of it can be said': {
    asked: { parameters: { format: strict, verbosity: 'high' } },
    chat: {
      response_format: { type: 'json_schema', json_schema: { name: 'n', schema, strict: true } },
      verbosity: 'high',
    },
    responses: { text: { format: strict, verbosity: 'high' } },
    anthropic: { output_config: { format: { type: 'json_schema', schema: fitted } } },
    bedrock: { outputConfig: structure({ name: 'n' }) },
    vertexai: config(json(fittedByGoogle)),
  },
  'JSON without a schema -> asked for where that can be': {
    asked: { parameters: { format: { type: 'json_object' } } },
    chat: { response_format: { type: 'json_object' } },
    responses: { text: { format: { type: 'json_object' } } },
    vertexai: config(json()),
  },
  'effort alone -> effort, of the highest kind too': {
    asked: { parameters: { reasoningEffort: 'xhigh' } },
    chat: { reasoning_effort: 'xhigh' },
    responses: { reasoning: { effort: 'xhigh' } },
    anthropic: { output_config: { effort: 'xhigh' } },
    bedrock: { outputConfig: { effort: 'xhigh' } },
    vertexai: config({ thinkingConfig: { thinkingLevel: 'XHIGH' } }),
  },
  'likeliest tokens and thinking -> the first where it can be said, neither for a model that is not of Claude':
    {
      asked: { parameters: { topK: 40, thinking: 2048 } },
      vertexai: config({ topK: 40 }),
    },
  'a user with a hash -> it, where there is a field for it': {
    asked: { user: 'a-hash' },
    responses: { safety_identifier: 'a-hash' },
    anthropic: { metadata: { user_id: 'a-hash' } },
  },
  'reasoning to be kept, in words -> both, where it can be said': {
    asked: { reasoning: 'shown', asksThinking: true },
    responses: { include: ['reasoning.encrypted_content'], reasoning: { summary: 'auto' } },
    anthropic: { thinking: { type: 'adaptive', display: 'summarized' } },
  },
  'the same, of a model that refuses both -> neither': {
    asked: { reasoning: 'shown', asksThinking: true, omits: new Set(['encryptedReasoning', 'summary']) },
    anthropic: { thinking: { type: 'adaptive', display: 'summarized' } },
  },
};

/** A choice beside tools, and how it is said. */
const choices: [
  given: string,
  asked: ModelParameters,
  said: Omit<Row, 'asked'>,
  turns?: typeof calls | undefined,
][] = [
  ['no choice, and a strict tool', {}, {}],
  [
    'one call at most',
    { parallelToolCalls: false },
    { openai: { parallel_tool_calls: false }, anthropic: { type: 'auto', disable_parallel_tool_use: true } },
  ],
  [
    'a free choice',
    { toolChoice: 'auto', parallelToolCalls: true },
    {
      openai: { tool_choice: 'auto', parallel_tool_calls: true },
      ...{ anthropic: { type: 'auto' }, bedrock: { auto: {} }, vertexai: { mode: 'AUTO' } },
    },
  ],
  [
    'the choice of one call',
    { toolChoice: 'required', parallelToolCalls: false },
    {
      openai: { tool_choice: 'required', parallel_tool_calls: false },
      anthropic: { type: 'any', disable_parallel_tool_use: true },
      ...{ bedrock: { any: {} }, vertexai: { mode: 'ANY' } },
    },
  ],
  [
    'the choice of a tool',
    { toolChoice: { name: 'clock' } },
    {
      chat: { tool_choice: { type: 'function', function: { name: 'clock' } } },
      responses: { tool_choice: { type: 'function', name: 'clock' } },
      ...{ anthropic: { type: 'tool', name: 'clock' }, bedrock: { tool: { name: 'clock' } } },
      vertexai: { mode: 'ANY', allowedFunctionNames: ['clock'] },
    },
  ],
  ...[undefined, calls].map((turns): (typeof choices)[number] => [
    turns ? 'the choice of none after calls' : 'the choice of none',
    { toolChoice: 'none' },
    { openai: { tool_choice: 'none' }, anthropic: { type: 'none' }, vertexai: { mode: 'NONE' } },
    turns,
  ]),
];
for (const [given, asked, said, turns] of choices) {
  const row: Row = { asked: { parameters: { tools, ...asked }, ...(turns && { turns }) } };
  for (const api of apis) {
    // Converse has no such choice, and wants tools wherever there are calls.
    const isLeftOut = api === 'bedrock' && asked.toolChoice === 'none' && !turns;
    const isOpenai = api === 'chat' || api === 'responses';
    if (!isLeftOut) row[api] = offered[api](said[api] ?? (isOpenai ? said.openai : undefined));
  }
  rows[`tools, and ${given} -> as each takes their schemas, and says that`] = row;
}

const cases = apis.flatMap((api) =>
  Object.entries(rows).map(([given, { [api]: adds, asked }]) => ({ api, given, asked, adds })),
);

it.each(cases)('$api is asked for $given', async ({ api, asked, adds }) => {
  for (const stream of [false, true]) {
    const body = JSON.parse(await send(api, { stream, ...asked }));
    const { model, messages, input, contents, stream: isStream, stream_options, ...own } = body;
    expect(own).toEqual({ ...always[api], ...adds });
    if (api === 'responses')
      expect(stream_options).toEqual(isStream ? { include_obfuscation: false } : undefined);
  }
});

it.each<[Api, field: RegExp | undefined, ofCap: RegExp | undefined]>([
  ['chat', undefined, undefined],
  ['responses', undefined, undefined],
  ['anthropic', /"max_tokens":32000\b/, /"max_tokens":8192\b/],
  ['bedrock', /"maxTokens":16000\b/, undefined],
  ['vertexai', undefined, undefined],
])('%s, no limit of the caller -> sends %s, and %s to a model that refuses that', async (api, ...limits) => {
  for (const [place, limit] of limits.entries()) {
    const omits = place === 1 ? { omits: new Set(['cap'] as const) } : {};
    const body = await send(api, { stream: false, maxOutputTokens: null, ...omits });
    expect(/"max\w*tokens":\d+/i.exec(body)?.[0] ?? '').toMatch(limit ?? /^$/);
  }
});

const { signal } = new AbortController();
const request: ProviderRequest = { turns: [hello], model: 'anthropic.claude-opus-5', signal };

it('Anthropic is asked without a limit -> has one, a larger one where it shall think much', () => {
  const limitAt = (reasoningEffort?: ModelParameters['reasoningEffort'], own?: Partial<ProviderRequest>) =>
    toBody({ ...request, ...(reasoningEffort && { parameters: { reasoningEffort } }), ...own }).max_tokens;
  const limits = ([undefined, 'low', 'high', 'xhigh', 'max'] as const).map((effort) => limitAt(effort));
  expect([...limits, limitAt('max', { maxOutputTokens: 9 })]).toEqual([
    ...[32_000, 32_000, 32_000, 64_000, 64_000, 9],
  ]);
});

it('lax tools at a server of others -> do not write their arguments as they come', () => {
  const eagerAt = (options: BodyOptions) =>
    toBody({ ...request, parameters: { tools } }, options).tools?.map((tool) => tool.eager_input_streaming);
  expect([eagerAt({}), eagerAt({ isForeign: true })]).toEqual([
    [undefined, true, true],
    Array(3).fill(undefined),
  ]);
});

it('Bedrock is asked for thinking in words -> asks Claude for summaries, and no other model', () => {
  const fieldsOf = (model: string, asksThinking = true) =>
    toInput({ ...request, model, asksThinking }).additionalModelRequestFields;
  const fields = [fieldsOf(request.model), fieldsOf('amazon.nova-pro'), fieldsOf(request.model, false)];
  expect(fields).toEqual([{ thinking: { type: 'adaptive', display: 'summarized' } }, undefined, undefined]);
});
