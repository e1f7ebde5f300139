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

/** Words of each provider's refusal of a request that breaks such a rule; those that take it have none. */
export const refusals = `
rule                        | openai               | anthropic             | bedrock              | vertexai
has turns                   | empty array          | at least one message  | must start with      | one contents field
has known roles             | value: 'robot'       | messages.0.role       | [user, assistant]    | a valid role
has a text in each turn     |                      | non-empty content     | is blank             | empty text param
has no blank text           |                      | non-whitespace        | is blank             |
has no empty system text    |                      | system: text content  | SystemContentBlock   | empty text param
has parts in each turn      | [0].content': empty  | non-empty content     | messages.0 is empty  | at least one parts
begins with the user        |                      | use the "user" role   | must start with      |
alternates                  |                      |                       | must alternate       | alternate between
ends with the user          |                      | message prefill       | message prefill      | with a user role
lists tools                 | 'tools': empty array |                       | toolConfig.tools'    | _declarations
names tools by a pattern    | not match pattern    | 0.custom.name         | toolSpec.name'       | function name
has no two tools of a name  |                      | must be unique        |                      | Duplicate function
describes tools in words    |                      |                       | toolSpec.description |
has objects as arguments    | got 'type: "None"'   | type: Field required  | Schema.json.type     | of type OBJECT
has no choice at their root |                      | does not support      | tools.0.custom       |
closes strict tools         | context=(), 'addi    | custom.input_schema   | tools.0.custom       | name "strict"
chooses among tools         | only allowed when    | only be specified     | null at 'toolConfig  |
chooses an offered tool     | Tool choice 'b'      | Tool 'b' not found    |                      | should be a subset
has the tools of its calls  |                      |                       | must be defined      |
has a result of each call   | messages: c1         | after: c1. Each       | following Ids: c1    | equal to the number
has a call for each result  | preceeding message   | messages.0.content.0  | at messages.0        | immediately after
has one result of a call    | preceeding message   | messages.2.content.1  | at messages.2        | immediately after
has results first           |                      | after: c1. Each       | following Ids: c1    | equal to the number
has results alone           |                      |                       |                      | with a model turn
has ids by a pattern        | maximum length 40    | messages.1.content.0  | pattern: [a-zA-Z0-9  |
has images                  | image_format         | not process image     |                      | image is not valid
has images of their type    |                      | image/gif media type  |                      | value image/gif
has small images            |                      | exceeds 10 MB         | exceeds 5 MB         |
has a known effort          | none, minimal, low   | 'xhigh' or 'max'      | [low, medium, high   | thinking_level
`;

const strict = "Invalid schema for response_format 'f': In context=";
const open = "For 'object' type, 'additionalProperties' must be explicitly set to false";
const list = { type: 'array', items: { type: 'string' } };

/** Schemas of a format: the words of Claude behind the place, and those of OpenAI. */
export const schemas: [schema: Record<string, unknown>, claude?: string, openai?: string][] = [
  [object, open, `${strict}(), 'additionalProperties' is required to be supplied and to be false.`],
  [{ ...closed, additionalProperties: {} }, open, `${strict}(), 'additionalProperties'`],
  [
    { ...closed, properties: { a: { oneOf: [] } } },
    "Schema type 'oneOf' is not supported",
    `${strict}('properties', 'a'), 'oneOf' is not permitted.`,
  ],
  [
    { type: 'integer', minimum: 1, maximum: 2 },
    "For 'integer' type, properties maximum, minimum are not sup",
  ],
  [{ ...list, maxItems: 2 }, "For 'array' type, properties maxItems are not supported"],
  [{ ...list, minItems: 2 }, "For 'array' type, 'minItems' values other than 0 or 1"],
  [{ ...list, minItems: 1 }],
  [{ ...closed, properties: { a: {} } }, 'Schema must have a type'],
  [{ ...closed, properties: { a: { $ref: '#' } } }, 'Circular references are not supported'],
  [{ $ref: 'https://example.com/a' }, 'Schema must be an object'],
  [{ type: 'string', format: 'color' }, "String format 'color' is not supported"],
  [{ type: 'string', pattern: '^(?=a)' }, 'Pattern has an unsupported feature'],
  [{ enum: [{}] }, 'Enum values must be primitives'],
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
const inB = (b: object) => ({ ...object, properties: { b } });
const choice = (facts: object) => ({
  ...declared(object),
  toolConfig: { functionCallingConfig: facts },
});

/** A change of a body that breaks a rule of its provider, and words of the answer. */
type OwnRule = [change: Record<string, unknown>, words: string];
/** Rules of one provider alone. */
export const ownRules: Record<ProviderId, OwnRule[]> = {
  openai: [
    [{ model: undefined }, 'you must provide a model parameter'],
    [{ foo: 5, bar: 1 }, 'Unrecognized request arguments supplied: foo, bar'],
    [{ messages: [{ content: 'x' }] }, "Missing required parameter: 'messages[0].role'."],
    [openAiUser({ content: null }), "Invalid value for 'content': expected a string, got null."],
    [openAiUser({ content: [{ type: 'txt' }] }), "Invalid value: 'txt'."],
    [openAiUser({ tool_calls: [] }), "'messages[0].tool_calls'"],
    [{ messages: [{ role: 'assistant', tool_calls: [] }] }, "'messages[0].tool_calls': empty array."],
    [{ messages: [{ role: 'assistant' }] }, "Missing required parameter: 'messages[0].content'."],
    [{ messages: [{ role: 'tool', content: '1' }] }, "'messages[0].tool_call_id'"],
    [
      openAiUser({ content: [{ type: 'image_url', image_url: { url: 'ftp://example.com/a' } }] }),
      "Invalid value: 'ftp://example.com/a'.",
    ],
    [{ max_completion_tokens: 1.5 }, 'expected an integer, but got a decimal'],
    [{ stream_options: { include_usage: true } }, "only allowed when 'stream' is enabled"],
    [{ seed: 0.5 }, "'seed': expected an integer, but got a decimal"],
    [{ stop: [...'abcde'] }, 'Expected an array with maximum length 4, but got an array with length 5'],
    [{ stop: ['a', ''] }, "Invalid type for 'stop[1]': expected a string of at least one character"],
    [{ stop: 5 }, "'stop': expected one of a string or array of strings"],
    [{ tools: Array(129).fill(tool) }, "Invalid 'tools': array too long."],
    [{ tools: [{ type: 'custom' }] }, "Invalid value: 'custom'. Supported values are: function."],
    [{ tools: [tool], tool_choice: 'any' }, "Invalid value: 'any'."],
    [{ parallel_tool_calls: false }, "'parallel_tool_calls' is only allowed when 'tools' are"],
    [{ response_format: { type: 'xml' } }, "Invalid value: 'xml'."],
    [{ response_format: { type: 'json_object' } }, "'messages' must contain the word 'json' in some"],
    [{ verbosity: 'huge' }, "Invalid value: 'huge'. Supported values are: low, medium, high."],
  ],
  anthropic: [
    [{ model: undefined }, 'model: Field required'],
    [{ messages: [system] }, "messages.0: use the top-level 'system' parameter"],
    [{ messages: [hello, hi, system] }, 'messages.2: a system message must immediately follow a user turn'],
    [{ messages: [hello, system, hello] }, 'messages.1: a system message must not precede a user turn'],
    [{ messages: [user({ type: 'audio' } as never)] }, 'messages.0.content.0.type: Input should be'],
    [{ max_tokens: '9' }, 'max_tokens: Input should be a valid integer'],
    [{ top_k: 5 }, '`top_k` is deprecated for this model.'],
    [{ stop_sequences: ['a', '\n'] }, 'each stop sequence must contain non-whitespace'],
    [{ tool_choice: { type: 'none', disable_parallel_tool_use: true } }, 'disable_parallel_tool_use: E'],
  ],
  bedrock: [
    [inference({ stopSequences: [''] }), 'have length greater than or equal to 1'],
    [{ messages: [user({} as never)] }, 'Unexpected type of value at messages.0.content.0'],
    [{ messages: [user({ image: { format: 'bmp', source: { bytes: png } } } as never)] }, '[png, jpeg'],
    [{ toolConfig: { tools: [bedrockTool], toolChoice: {} } }, 'at toolConfig.toolChoice'],
    ...[[], [{}], [{ text: '' }]].map((content): OwnRule => {
      const messages = [user({ toolResult: { toolUseId: 'c1', content } } as never)];
      return [{ messages }, 'toolResult.content'];
    }),
  ],
  vertexai: [
    [generation({ seed: 2 ** 31 }), "Invalid value at 'generation_config.seed'"],
    [generation({ stopSequences: [''] }), "at 'generation_config.stop_sequences[0]'"],
    [generation({ stopSequences: [...'abcdef'] }), 'it has 6 stop sequences but'],
    [generation({ responseJsonSchema: object }), "Invalid value at 'generation_config'"],
    [contents(['model', { text: 'm' }]), 'single turn requests end with a user role'],
    [contents(['user', {}]), 'it must have a text parameter'],
    [contents(['user', { text: 'a', ...call }]), "at 'contents[0].parts[0]'"],
    [
      contents(
        ['user', { text: 'a' }],
        ['model', call],
        ['user', { functionResponse: { name: 'weather', response: {} } }],
      ),
      'function call `weather` in the 2. content block is missing a `thought_signature`.',
    ],
    [
      contents(
        ['user', { text: 'a' }],
        ['model', call],
        ['user', { functionResponse: { name: 'b', response: {} } }],
      ),
      'the number of function response parts is equal to the number of function call parts',
    ],
    [choice({ mode: 'AUTO', allowedFunctionNames: ['weather'] }), "at 'tool_config.function_calling_config'"],
    [
      declared({ ...object, properties: { b: { $ref: '#', title: 'b' } } }),
      'a schema with $ref must not set other fields, but has title.',
    ],
    [declared({ ...object, required: ['a'] }), '[0].parameters.required[0]: property is not defined'],
    [declared(inB({ anyOf: [{ enum: ['a', ''] }] })), 'properties[b].any_of[0].enum[1]: cannot be empty'],
    [declared(inB({ type: 'string', enum: [] })), 'properties[b].enum: should be non-empty'],
    [declared(inB({ type: ['array', 'null'] })), 'parameters.properties[b].items: missing field'],
    [
      generation({
        responseMimeType: 'application/json',
        responseJsonSchema: { type: 'array', items: { type: 'array' } },
      }),
      'GenerateContentRequest.generation_config.response_schema.items.items: missing field',
    ],
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
