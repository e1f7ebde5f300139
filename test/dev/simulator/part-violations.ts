import type { ProviderId } from '../../../shared/contract.js';
import type { Violation } from './violations.js';

/** Schemas that Claude does not take in a format or in a strict tool, and words of the refusal. */
const closed = { type: 'object', additionalProperties: false };
const claudeSchemas: [schema: object, words: string][] = [
  [{ type: 'object' }, "For 'object' type, 'additionalProperties' must be explicitly set to false"],
  [
    { ...closed, additionalProperties: {} },
    "For 'object' type, 'additionalProperties' must be explicitly set to false",
  ],
  [
    { ...closed, properties: { n: { type: 'integer', minimum: 1, maximum: 2 } } },
    "For 'integer' type, properties maximum, minimum are not supported",
  ],
  [{ type: 'string', minLength: 1 }, "For 'string' type, properties minLength are not supported"],
  [
    { type: 'array', items: { type: 'string' }, maxItems: 2 },
    "For 'array' type, properties maxItems are not supported",
  ],
  [
    { type: 'array', items: { type: 'string' }, minItems: 2 },
    "For 'array' type, 'minItems' values other than 0 or 1",
  ],
  [{ anyOf: [{ oneOf: [] }] }, "Schema type 'oneOf' is not supported"],
  [{ ...closed, properties: { a: {} } }, 'Schema must have a type'],
  [{ ...closed, properties: { a: { $ref: '#' } } }, 'Circular references are not supported'],
  [{ $ref: 'https://example.com/a' }, 'Schema must be an object'],
  [{ type: 'string', format: 'color' }, "String format 'color' is not supported"],
  [{ type: 'string', pattern: '^(?=a)' }, 'Pattern has an unsupported feature'],
  [{ enum: [{}] }, 'Enum values must be primitives'],
];
const text = { type: 'string' };
const object = { type: 'object', properties: { city: text } };
const png = 'iVBORw0KGgoAAAANSUhEUg==';
const noImage = 'bm8gaW1hZ2U=';

const openAi = {
  tool: (facts: object = {}) => ({ type: 'function', function: { name: 'a', parameters: object, ...facts } }),
  call: (id = 'c1') => ({ id, type: 'function', function: { name: 'a', arguments: '{}' } }),
  user: { role: 'user', content: 'Hello' },
};
const calling = (id = 'c1') => ({ role: 'assistant', content: null, tool_calls: [openAi.call(id)] });
const resultOf = (id = 'c1') => ({ role: 'tool', tool_call_id: id, content: '1' });
const imageUrl = (url: string) => ({
  messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }],
});
const jsonSchema = (schema: object) => ({
  response_format: { type: 'json_schema', json_schema: { name: 'f', strict: true, schema } },
});

const openai: Violation[] = [
  [{ tools: [] }, "Invalid 'tools': empty array."],
  [{ tools: Array(129).fill(openAi.tool()) }, "Invalid 'tools': array too long."],
  [{ tools: [{ type: 'custom' }] }, "Invalid value: 'custom'. Supported values are: function."],
  [{ tools: [{ ...openAi.tool(), x: 1 }] }, "Unknown parameter: 'tools[0].x'."],
  [{ tools: [openAi.tool({ x: 1 })] }, "Unknown parameter: 'tools[0].function.x'."],
  [
    { tools: [openAi.tool({ name: 'a b' })] },
    "Invalid 'tools[0].function.name': string does not match pattern.",
  ],
  [
    { tools: [openAi.tool({ parameters: {} })] },
    `Invalid schema for function 'a': schema must be a JSON Schema of 'type: "object"', got 'type: "None"'.`,
  ],
  [
    { tools: [openAi.tool({ strict: true })] },
    "Invalid schema for function 'a': In context=(), 'additionalProperties'",
  ],
  [{ tool_choice: 'auto' }, "'tool_choice' is only allowed when 'tools' are specified."],
  [{ parallel_tool_calls: false }, "'parallel_tool_calls' is only allowed when 'tools' are specified."],
  [{ tools: [openAi.tool()], tool_choice: 'any' }, "Invalid value: 'any'."],
  [
    { tools: [openAi.tool()], tool_choice: { type: 'function', function: { name: 'b' } } },
    "Tool choice 'b' not found in 'tools' parameter.",
  ],
  [
    { messages: [openAi.user, calling(), openAi.user] },
    "must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: c1",
  ],
  [
    { messages: [openAi.user, resultOf()] },
    "messages with role 'tool' must be a response to a preceeding message",
  ],
  [
    { messages: [openAi.user, calling('x'.repeat(41)), resultOf('x'.repeat(41))] },
    'Expected a string with maximum length 40',
  ],
  [{ messages: [{ ...openAi.user, tool_calls: [openAi.call()] }] }, "'messages[0].tool_calls'"],
  [{ messages: [openAi.user, calling(), { role: 'tool', content: '1' }] }, "'messages[2].tool_call_id'"],
  [{ messages: [{ ...calling(), tool_calls: [] }] }, "'messages[0].tool_calls'"],
  [imageUrl(`data:image/png;base64,${noImage}`), 'invalid_image_format'],
  [imageUrl('ftp://example.com/a.png'), "Invalid value: 'ftp://example.com/a.png'."],
  [{ response_format: { type: 'xml' } }, "Invalid value: 'xml'."],
  [{ response_format: { type: 'json_object' } }, "'messages' must contain the word 'json' in some form"],
  [
    jsonSchema(object),
    "Invalid schema for response_format 'f': In context=(), 'additionalProperties' is required to be supplied and to be false.",
  ],
  [
    jsonSchema({ ...closed, properties: { a: { oneOf: [] } } }),
    "In context=('properties', 'a'), 'oneOf' is not permitted.",
  ],
  [{ verbosity: 'huge' }, "Invalid value: 'huge'. Supported values are: low, medium, high."],
];

const tool = (facts: object = {}) => ({ name: 'a', input_schema: object, ...facts });
const said = (role: string, ...content: object[]) => ({ role, content });
const hello = said('user', { type: 'text', text: 'Hello' });
const use = (facts: object = {}) =>
  said('assistant', { type: 'tool_use', id: 'c1', name: 'a', input: {}, ...facts });
const result = (facts: object = {}) => ({ type: 'tool_result', tool_use_id: 'c1', content: '1', ...facts });
const image = (media_type: string, data: string) => ({
  messages: [said('user', { type: 'image', source: { type: 'base64', media_type, data } })],
});

const anthropic: Violation[] = [
  [{ tools: [tool({ x: 1 })] }, 'tools.0.x: Extra inputs are not permitted'],
  [
    { tools: [tool(), tool({ name: 'a b' })] },
    "tools.1.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
  ],
  [{ tools: [tool(), tool()] }, 'tools: Tool names must be unique.'],
  [{ tools: [tool({ input_schema: {} })] }, 'tools.0.custom.input_schema.type: Field required'],
  [{ tools: [tool({ input_schema: { ...object, anyOf: [] } })] }, 'does not support oneOf, allOf, or anyOf'],
  [{ tool_choice: { type: 'auto' } }, 'tool_choice may only be specified while providing tools.'],
  [{ tools: [tool()], tool_choice: { type: 'tool', name: 'b' } }, "Tool 'b' not found in provided tools"],
  [
    { tools: [tool()], tool_choice: { type: 'none', disable_parallel_tool_use: true } },
    'tool_choice.disable_parallel_tool_use: Extra inputs are not permitted',
  ],
  [
    { output_config: { effort: 'minimal' } },
    "output_config.effort: Input should be 'low' or 'medium' or 'high' or 'xhigh' or 'max'",
  ],
  [
    { output_config: { format: { type: 'json_schema', name: 'f', schema: closed } } },
    'output_config.format.name: Extra inputs are not permitted',
  ],
  [
    { messages: [hello, use(), hello] },
    'messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: c1. Each',
  ],
  [
    { messages: [said('user', result())] },
    'messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: c1. Each',
  ],
  [
    { messages: [hello, use(), said('user', hello.content[0] as object, result())] },
    'without `tool_result` blocks',
  ],
  [
    { messages: [hello, use(), said('user', result(), result())] },
    'messages.2.content.1: unexpected `tool_use_id`',
  ],
  [
    { messages: [hello, use({ id: 'c.1' }), said('user', result({ tool_use_id: 'c.1' }))] },
    "messages.1.content.0.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
  ],
  [
    { messages: [hello, use({ input: '{}' }), said('user', result())] },
    'messages.1.content.0.input: Input should be',
  ],
  [
    { messages: [said('user', { type: 'text', text: 'a', x: 1 })] },
    'messages.0.content.0.x: Extra inputs are not',
  ],
  [{ messages: [said('user', { type: 'audio' })] }, 'messages.0.content.0.type: Input should be'],
  [image('image/png', noImage), 'Could not process image'],
  [
    image('image/jpeg', png),
    'The image was specified using the image/jpeg media type, but the image appears to be a image/png image',
  ],
  [image('image/png', png + 'A'.repeat(10 * 1024 * 1024)), 'image exceeds 10 MB maximum: '],
  ...claudeSchemas.map(([schema, words]): Violation => {
    return [
      { output_config: { format: { type: 'json_schema', schema } } },
      `output_config.format.schema: ${words}`,
    ];
  }),
  [
    { tools: [tool({ strict: true })] },
    "tools.0.custom.input_schema: For 'object' type, 'additionalProperties'",
  ],
];

const spec = (facts: object = {}) => ({ toolSpec: { name: 'a', inputSchema: { json: object }, ...facts } });
const tools = (...specs: object[]) => ({ toolConfig: { tools: specs } });
const toolUse = (facts: object = {}) =>
  said('assistant', { toolUse: { toolUseId: 'c1', name: 'a', input: {}, ...facts } });
const toolResult = (facts: object = {}) =>
  said('user', { toolResult: { toolUseId: 'c1', content: [{ text: '1' }], ...facts } });
const u = said('user', { text: 'Hello' });
const format = (schema: object) => ({
  outputConfig: {
    textFormat: { type: 'json_schema', structure: { jsonSchema: { schema: JSON.stringify(schema) } } },
  },
});
const modelError = 'The model returned the following errors: ';

const bedrock: Violation[] = [
  [tools(), "at 'toolConfig.tools' failed to satisfy constraint: Member must have length"],
  [tools(spec({ x: 1 })), '#/toolConfig/tools/0/toolSpec: extraneous key [x] is not permitted'],
  [
    tools(spec({ name: 'a.b' })),
    "1 validation error detected: Value 'a.b' at 'toolConfig.tools.1.member.toolSpec.name' failed to satisfy constraint",
  ],
  [
    tools(spec({ description: '' })),
    "'toolConfig.tools.1.member.toolSpec.description' failed to satisfy constraint",
  ],
  [
    tools(spec({ inputSchema: { json: {} } })),
    'The value at toolConfig.tools.0.toolSpec.inputSchema.json.type must be one of the following: object.',
  ],
  [
    tools(spec({ inputSchema: { json: { ...object, oneOf: [] } } })),
    `${modelError}tools.0.custom.input_schema`,
  ],
  [{ toolConfig: { tools: [spec()], toolChoice: {} } }, 'Unexpected type of value at toolConfig.toolChoice'],
  [
    { messages: [u, toolUse(), toolResult()] },
    'The toolConfig field must be defined when using toolUse and toolResult content blocks.',
  ],
  [
    { ...tools(spec()), messages: [u, toolUse(), u] },
    'Expected toolResult blocks at messages.2.content for the following Ids: c1',
  ],
  [
    { ...tools(spec()), messages: [toolResult()] },
    'The number of toolResult blocks at messages.0.content exceeds the number of toolUse blocks of previous turn.',
  ],
  [
    { ...tools(spec()), messages: [u, toolUse({ toolUseId: 'c:1' }), u] },
    'satisfy regular expression pattern',
  ],
  [{ ...tools(spec()), messages: [u, toolUse({ input: '{}' }), u] }, 'messages.1.content.0.toolUse.input'],
  [
    { ...tools(spec()), messages: [u, toolUse(), toolResult({ content: [] })] },
    'messages.3.member.content.1.member.toolResult.content',
  ],
  [
    { ...tools(spec()), messages: [u, toolUse(), toolResult({ content: [{ text: '' }] })] },
    'messages.3.member.content.1.member.toolResult.content.1.member.text',
  ],
  [
    { messages: [said('user', { text: 'a', x: 1 })] },
    '#/messages/0/content/0: extraneous key [x] is not permitted',
  ],
  [{ outputConfig: { effort: 'minimal' } }, 'satisfy enum value set: [low, medium, high, xhigh, max]'],
  [
    {
      messages: [
        said('user', { image: { format: 'png', source: { bytes: 'A'.repeat(5 * 1024 * 1024 + 4) } } }),
      ],
    },
    `${modelError}messages.0.content.0.image.source.base64: image exceeds 5 MB maximum: `,
  ],
  [
    { messages: [said('user', { image: { format: 'bmp', source: { bytes: png } } })] },
    'satisfy enum value set: [png',
  ],
  ...claudeSchemas.map(([schema, words]): Violation => {
    return [format(schema), `${modelError}output_config.format.schema: ${words}`];
  }),
];

const declared = (...functionDeclarations: object[]) => ({ tools: [{ functionDeclarations }] });
const declaration = { name: 'a', parametersJsonSchema: object };
const contents = (...list: [role: string, ...parts: object[]][]) => ({
  contents: list.map(([role, ...parts]) => ({ role, parts })),
});
const call = { functionCall: { name: 'a', args: {} }, thoughtSignature: 's' };
const response = { functionResponse: { name: 'a', response: { output: '1' } } };
const ask = { text: 'Hello' };
const choice = (facts: object) => ({
  ...declared(declaration),
  toolConfig: { functionCallingConfig: facts },
});

const vertexai: Violation[] = [
  [
    declared({ ...declaration, strict: true }),
    'Unknown name "strict" at \'tools[0].function_declarations[0]\'',
  ],
  [
    declared({ name: '1' }),
    '[FIELD_INVALID] Invalid function name. Must start with a letter or an underscore.',
  ],
  [declared(declaration, declaration), 'Duplicate function declaration found: a'],
  [
    declared({ name: 'a', parametersJsonSchema: { type: 'string' } }),
    '`a` functionDeclaration parameters schema should be of type OBJECT.',
  ],
  [
    declared({
      name: 'a',
      parametersJsonSchema: { ...object, properties: { b: { $ref: '#', title: 'b' } } },
    }),
    'a schema with $ref must not set other fields, but has title.',
  ],
  [
    choice({ mode: 'ANY', allowedFunctionNames: ['b'] }),
    'allowed_function_names should be a subset of the provided function_declarations',
  ],
  [
    choice({ mode: 'AUTO', allowedFunctionNames: ['a'] }),
    "Invalid value at 'tool_config.function_calling_config'",
  ],
  [
    contents(['user', ask], ['model', call], ['user', ask]),
    'Please ensure that the number of function response parts is equal to the number of function call parts',
  ],
  [
    contents(['user', ask], ['model', call], ['user', { functionResponse: { name: 'b', response: {} } }]),
    'Please ensure that the number of function response parts is equal to the number of function call parts',
  ],
  [
    contents(['user', response]),
    'Please ensure that function response turn comes immediately after a function call turn.',
  ],
  [
    contents(['user', ask], ['model', call], ['user', response, ask]),
    'Requests ending with a model turn are not supported.',
  ],
  [
    contents(['user', ask], ['model', { functionCall: call.functionCall }], ['user', response]),
    'function call `a` in the 2. content block is missing a `thought_signature`.',
  ],
  [
    contents(
      ['user', ask],
      ['model', { functionCall: { ...call.functionCall, id: '1' } }],
      ['user', response],
    ),
    'Unknown name "id" at \'contents[1].parts[0].function_call\'',
  ],
  [
    contents(['user', { ...ask, inlineData: { mimeType: 'image/png', data: png } }]),
    "at 'contents[0].parts[0]'",
  ],
  [
    contents(['user', { inlineData: { mimeType: 'image/png', data: noImage } }]),
    'Provided image is not valid.',
  ],
  [
    contents(['user', { inlineData: { mimeType: 'image/gif', data: png } }]),
    'mimeType parameter with value image/gif',
  ],
  [{ generationConfig: { responseJsonSchema: object } }, "Invalid value at 'generation_config'"],
  [
    { generationConfig: { thinkingConfig: { thinkingLevel: 'XHIGH' } } },
    "'generation_config.thinking_config.thinking_level'",
  ],
];

/** Every rule for tools, formats and parts that a provider's body can break. */
export const partViolations: Record<ProviderId, Violation[]> = { openai, anthropic, bedrock, vertexai };
