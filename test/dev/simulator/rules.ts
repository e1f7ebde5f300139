import type { ProviderId } from '../../../shared/contracts/contract.js';
import type { ToolCallPart, ToolResultPart } from '../../../shared/conversation.js';
import { type Asked, imageOf, type SaidPart } from './requests.js';

const user = (...content: SaidPart[]) => ({ role: 'user', content });
const hello = { role: 'user', content: 'Hello' };
const hi = { role: 'assistant', content: 'Hi!' };
const system = { role: 'system', content: 'Be brief.' };
const text = (said: string): SaidPart => ({ type: 'text', text: said });
const called = (facts: Partial<ToolCallPart> = {}) => ({
  role: 'assistant',
  content: [{ type: 'tool_call', id: 'c1', name: 'weather', arguments: '{}', ...facts } as const],
});
const result = (facts: Partial<ToolResultPart> = {}): SaidPart => ({
  ...{ type: 'tool_result', callId: 'c1', content: '1' },
  ...facts,
});
const object = { type: 'object', properties: { city: { type: 'string' } } };
const closed = { type: 'object', additionalProperties: false };
const weather = { name: 'weather', parameters: object };
const png = 'iVBORw0KGgoAAAANSUhEUg==';
const longId = 'c.'.repeat(33);
/** Rules in our words: what a request is not like that breaks it. */
export const broken: Record<string, Asked> = {
  'has turns': { turns: [] },
  'has known roles': { turns: [{ role: 'robot', content: 'x' }] },
  'has a text in each turn': { turns: [{ role: 'user', content: '' }] },
  'has no blank text': { turns: [user(text(' \n'))] },
  'has no empty system text': { turns: [{ role: 'system', content: '' }, hello] },
  'has parts in each turn': { turns: [user()] },
  'begins with the user': { turns: [hi, hello] },
  alternates: { turns: [hello, hello] },
  'ends with the user': { turns: [hello, hi] },
  'lists tools': { tools: [] },
  'names tools by a pattern': { tools: [{ ...weather, name: '1 b' }] },
  'has no two tools of a name': { tools: [weather, weather] },
  'describes tools in words': { tools: [{ ...weather, description: '' }] },
  'has objects as arguments': { tools: [{ ...weather, parameters: {} }] },
  'has no choice at their root': { tools: [{ ...weather, parameters: { ...object, anyOf: [] } }] },
  'closes strict tools': { tools: [{ ...weather, strict: true }] },
  'chooses among tools': { choice: 'required' },
  'chooses an offered tool': { tools: [weather], choice: { name: 'b' } },
  'has the tools of its calls': { turns: [hello, called(), user(result())] },
  'has a result of each call': { tools: [weather], turns: [hello, called(), hello] },
  'has a call for each result': { tools: [weather], turns: [user(result())] },
  'has one result of a call': { tools: [weather], turns: [hello, called(), user(result(), result())] },
  'has results first': { tools: [weather], turns: [hello, called(), user(text('See'), result())] },
  'has results alone': { tools: [weather], turns: [hello, called(), user(result(), text('See'))] },
  'has ids by a pattern': {
    ...{ tools: [weather], turns: [hello, called({ id: longId }), user(result({ callId: longId }))] },
  },
  'has images': { turns: [user(imageOf('image/png', 'bm8gaW1hZ2U='))] },
  'has images of their type': { turns: [user(imageOf('image/gif', png))] },
  'has small images': { turns: [user(imageOf('image/png', png + 'A'.repeat(10 * 1024 * 1024)))] },
  'has a known effort': { effort: 'huge' },
};

/** The place that each provider refuses in a request that breaks such a rule; those that take it have none. */
export const refusals = `
rule                        | openai           | anthropic             | bedrock            | vertexai
has turns                   | messages         | messages              | messages           | contents
has known roles             | messages[0].role | messages.0.role       | messages.0.role    | contents[0].role
has a text in each turn     |                  | messages              | messages.0.content | 0].parts[0].text
has no blank text           |                  | messages              | messages.0.content |
has no empty system text    |                  | system                | system             | parts[0].text
has parts in each turn      | 0].content       | messages.0.content    | messages.0.content | contents[0].parts
begins with the user        |                  | messages.0            | messages           |
alternates                  |                  |                       | messages           | contents
ends with the user          |                  | messages              | messages           | contents
lists tools                 | tools            |                       | toolConfig.tools   | ction_declarations
names tools by a pattern    | function.name    | tools.0.custom.name   | 0.toolSpec.name    | 0].name
has no two tools of a name  |                  | tools.1.custom.name   |                    | 1].name
describes tools in words    |                  |                       | description        |
has objects as arguments    | parameters       | 0.custom.input_schema | inputSchema.json   | 0].parameters
has no choice at their root |                  | 0.custom.input_schema | inputSchema.json   |
closes strict tools         | parameters       | 0.custom.input_schema | inputSchema.json   | 0].strict
chooses among tools         | tool_choice      | tool_choice           | toolConfig.tools   |
chooses an offered tool     | tool_choice      | tool_choice           |                    | wed_function_names
has the tools of its calls  |                  |                       | toolConfig         |
has a result of each call   | messages         | messages.1.content.0  | 1.content.0        | 1].parts[0]
has a call for each result  | messages         | messages.0.content.0  | 0.content.0        | 0].parts[0]
has one result of a call    | messages         | messages.2.content.1  | 2.content.1        | 2].parts[1]
has results first           |                  | messages.1.content.0  | 1.content.0        | 1].parts[0]
has results alone           |                  |                       |                    | 2].parts[1]
has ids by a pattern        | messages         | messages.1.content.0  | 1.content.0        |
has images                  | messages         | messages.0.content.0  |                    | 0].parts[0]
has images of their type    |                  | messages.0.content.0  |                    | 0].parts[0]
has small images            |                  | messages.0.content.0  | 0.content.0        |
has a known effort          | reasoning_effort | output_config.effort  | effort             | thinking_level
`;

const list = { type: 'array', items: { type: 'string' } };

/** Schemas of a format: what Claude expects instead, and OpenAI. */
export const schemas: [schema: Record<string, unknown>, claude?: string, openai?: string][] = [
  [object, 'additionalProperties that are false', 'additionalProperties that are false in context=()'],
  [{ ...closed, additionalProperties: {} }, 'additionalProperties', 'additionalProperties'],
  [{ ...closed, properties: { a: { oneOf: [] } } }, 'a type', 'no oneOf in context=(properties.a)'],
  [{ type: 'integer', minimum: 1 }, 'no minimum'],
  [{ ...list, maxItems: 2 }, 'no maxItems'],
  [{ ...list, minItems: 2 }, 'minItems of 0 or 1'],
  [{ ...list, minItems: 1 }],
  [{ ...closed, properties: { a: {} } }, 'a type'],
  [{ ...closed, properties: { a: { $ref: '#' } } }, 'no circle'],
  [{ $ref: 'https://example.com/a' }, 'an object'],
  [{ type: 'string', format: 'color' }, 'no format color'],
  [{ type: 'string', pattern: '^(?=a)' }, 'a pattern of other features'],
  [{ enum: [{}] }, 'an enum of primitives'],
];

const openAiUser = (facts: object) => ({ messages: [{ role: 'user', content: 'Hello', ...facts }] });
const tool = { type: 'function', function: weather };
const bedrockTool = { toolSpec: { name: 'weather', inputSchema: { json: object } } };
const inference = (config: object) => ({ inferenceConfig: config });
const generation = (config: object) => ({ generationConfig: config });
const contents = (...list: [role: string, ...parts: object[]][]) => ({
  contents: list.map(([role, ...parts]) => ({ role, parts })),
});
const call = { functionCall: { name: 'weather', args: {} } };
const declared = (parameters: object) => ({
  tools: [{ functionDeclarations: [{ name: 'weather', parametersJsonSchema: parameters }] }],
});
const parameters = 'tools[0].function_declarations[0].parameters';
const inB = (b: object) => ({ ...object, properties: { b } });
const choice = (facts: object) => ({
  ...declared(object),
  toolConfig: { functionCallingConfig: facts },
});

/** A change of a body that breaks a rule of its provider, and the place that it refuses. */
type OwnRule = [change: Record<string, unknown>, place: string];
/** Rules of one provider alone. */
export const ownRules: Record<ProviderId, OwnRule[]> = {
  openai: [
    [{ model: undefined }, 'model'],
    [{ foo: 5 }, 'foo'],
    [{ messages: [{ content: 'x' }] }, 'messages[0].role'],
    [openAiUser({ content: null }), 'messages[0].content'],
    [openAiUser({ content: [{ type: 'txt' }] }), 'messages[0].content[0].type'],
    [{ messages: [{ role: 'assistant', tool_calls: [] }] }, 'messages[0].tool_calls'],
    [{ messages: [{ role: 'assistant' }] }, 'messages[0].content'],
    [
      openAiUser({ content: [{ type: 'image_url', image_url: { url: 'ftp://example.com/a' } }] }),
      'messages[0].content[0].image_url.url',
    ],
    [{ max_completion_tokens: 1.5 }, 'max_completion_tokens'],
    [{ stream_options: { include_usage: true } }, 'stream_options'],
    [{ seed: 0.5 }, 'seed'],
    [{ stop: [...'abcde'] }, 'stop'],
    [{ stop: ['a', ''] }, 'stop[1]'],
    [{ tools: Array(129).fill(tool) }, 'tools'],
    [{ tools: [tool], tool_choice: 'any' }, 'tool_choice'],
    [{ parallel_tool_calls: false }, 'parallel_tool_calls'],
    [{ response_format: { type: 'xml' } }, 'response_format.type'],
    [{ response_format: { type: 'json_object' } }, 'messages'],
    [{ verbosity: 'huge' }, 'verbosity'],
  ],
  anthropic: [
    [{ model: undefined }, 'model'],
    [{ messages: [system] }, 'messages.0'],
    [{ messages: [hello, hi, system] }, 'messages.2'],
    [{ messages: [hello, system, hello] }, 'messages.1'],
    [{ messages: [user({ type: 'audio' } as never)] }, 'messages.0.content.0.type'],
    [{ max_tokens: '9' }, 'max_tokens'],
    [{ top_k: 5 }, '`top_k` is deprecated for this model.'],
    [{ stop_sequences: ['a', '\n'] }, 'stop_sequences.1'],
  ],
  bedrock: [
    [inference({ stopSequences: [''] }), 'inferenceConfig.stopSequences.0'],
    [{ messages: [user({} as never)] }, 'messages.0.content.0'],
    [
      { messages: [user({ image: { format: 'bmp', source: { bytes: png } } } as never)] },
      'messages.0.content.0.image.format',
    ],
    [{ toolConfig: { tools: [bedrockTool], toolChoice: {} } }, 'toolConfig.toolChoice'],
    ...[[], [{}], [{ text: '' }]].map((content): OwnRule => {
      const messages = [user({ toolResult: { toolUseId: 'c1', content } } as never)];
      return [{ messages }, 'messages.0.content.0.toolResult.content'];
    }),
  ],
  vertexai: [
    [generation({ seed: 2 ** 31 }), 'generation_config.seed'],
    [generation({ stopSequences: [''] }), 'generation_config.stop_sequences[0]'],
    [generation({ stopSequences: [...'abcdef'] }), 'generation_config.stop_sequences'],
    [generation({ responseJsonSchema: object }), 'generation_config'],
    [contents(['model', { text: 'm' }]), 'contents'],
    [contents(['user', {}]), 'contents[0].parts[0]'],
    [contents(['user', { text: 'a', ...call }]), 'contents[0].parts[0]'],
    [
      contents(
        ['user', { text: 'a' }],
        ['model', call],
        ['user', { functionResponse: { name: 'weather', response: {} } }],
      ),
      'contents[1].parts[0]: expected a thought_signature',
    ],
    [
      contents(
        ['user', { text: 'a' }],
        ['model', call],
        ['user', { functionResponse: { name: 'b', response: {} } }],
      ),
      'contents[1].parts[0]: expected a result',
    ],
    [choice({ mode: 'AUTO', allowedFunctionNames: ['weather'] }), 'tool_config.function_calling_config'],
    [declared(inB({ $ref: '#', title: 'b' })), `${parameters}.properties.b: expected no title`],
    [declared({ ...object, required: ['a'] }), `${parameters}.required`],
    [declared(inB({ anyOf: [{ enum: ['a', ''] }] })), `${parameters}.properties.b.any_of.0.enum`],
    [declared(inB({ type: 'string', enum: [] })), `${parameters}.properties.b.enum`],
    [declared(inB({ type: ['array', 'null'] })), `${parameters}.properties.b.items`],
  ],
};

/** The smallest and the largest number that a provider takes, and the smallest steps beyond. */
export const ranges: [ProviderId, name: string, least: number, most: number, step: number][] = [
  ['openai', 'max_completion_tokens', 1, Infinity, 1],
  ['openai', 'temperature', 0, 2, 0.1],
  ['openai', 'top_p', 0, 1, 0.1],
  ['openai', 'frequency_penalty', -2, 2, 0.1],
  ['openai', 'presence_penalty', -2, 2, 0.1],
  ['anthropic', 'max_tokens', 1, Infinity, 1],
  ['bedrock', 'inferenceConfig.maxTokens', 1, Infinity, 1],
  ['bedrock', 'inferenceConfig.temperature', 0, 1, 0.1],
  ['bedrock', 'inferenceConfig.topP', 0, 1, 0.1],
  ['vertexai', 'generationConfig.maxOutputTokens', 1, 65_536, 1],
  ['vertexai', 'generationConfig.temperature', 0, 2, 0.1],
  ['vertexai', 'generationConfig.topP', 0, 1, 0.1],
  ['vertexai', 'generationConfig.frequencyPenalty', -2, 1.9, 0.1],
  ['vertexai', 'generationConfig.presencePenalty', -2, 1.9, 0.1],
];
