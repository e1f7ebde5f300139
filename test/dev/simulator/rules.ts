import type { ProviderId } from '../../../shared/contracts/contract.js';
import type { Part } from '../../../shared/conversation.js';
import { call, hello, result, said, talk, turn } from '../../support/apis.js';
import { type Asked, imageOf } from './requests.js';

const user = (...content: Part[]) => turn('user', content);
const [hi, called, answer] = [turn('assistant', 'Hi!'), turn('assistant', [call('c1')]), result('c1')];
const system = turn('system', 'Be brief.');
const object = { type: 'object', properties: { city: { type: 'string' } } };
const closed = { type: 'object', additionalProperties: false };
const weather = { name: 'weather', parameters: object };
const png = 'iVBORw0KGgoAAAANSUhEUg==';
const longId = 'c.'.repeat(33);
/** Rules in our words: what a request is not like that breaks it. */
export const broken: Record<string, Asked> = {
  'has turns': { turns: [] },
  'has a text in each turn': { turns: [turn('user', '')] },
  'has no blank text': { turns: [user(said(' \n'))] },
  'has no empty system text': { turns: [turn('system', ''), hello] },
  'has parts in each turn': { turns: [user()] },
  'begins with the user': { turns: [hi, hello] },
  alternates: { turns: [hello, hello] },
  'ends with the user': { turns: [hello, hi] },
  'names tools by a pattern': { tools: [{ ...weather, name: '1 b' }] },
  'has no two tools of a name': { tools: [weather, weather] },
  'describes tools in words': { tools: [{ ...weather, description: '' }] },
  'has objects as arguments': { tools: [{ ...weather, parameters: {} }] },
  'has no choice at their root': { tools: [{ ...weather, parameters: { ...object, anyOf: [] } }] },
  'closes strict tools': { tools: [{ ...weather, strict: true }] },
  'chooses among tools': { choice: 'required' },
  'chooses an offered tool': { tools: [weather], choice: { name: 'b' } },
  'has the tools of its calls': { turns: talk([call('c1')], [answer]) },
  'has a result of each call': { tools: [weather], turns: [hello, called, hello] },
  'has a call for each result': { tools: [weather], turns: [user(answer)] },
  'has one result of a call': { tools: [weather], turns: [hello, called, user(answer, answer)] },
  'has results first': { tools: [weather], turns: [hello, called, user(said('See'), answer)] },
  'has results alone': { tools: [weather], turns: [hello, called, user(answer, said('See'))] },
  'has ids by a pattern': {
    ...{ tools: [weather], turns: [hello, turn('assistant', [call(longId)]), user(result(longId))] },
  },
  'has images': { turns: [user(imageOf('image/png', 'bm8gaW1hZ2U='))] },
  'has images of their type': { turns: [user(imageOf('image/gif', png))] },
  'has small images': { turns: [user(imageOf('image/png', png + 'A'.repeat(10 * 1024 * 1024)))] },
};

/**
 * The place that each format refuses in a request that breaks such a rule; those that take it have none. Of Responses
 * it is the whole parameter.
 */
export const refusals = `
rule                        | openai        | anthropic             | bedrock          | vertexai           | responses
has turns                   | messages      | messages              | messages         | contents           | input
has a text in each turn     |               | messages              | messages         | contents           |
has no blank text           |               | messages              | messages         |                    |
has no empty system text    |               | messages              | messages         | contents           |
has parts in each turn      |               | messages              | messages         | contents           |
begins with the user        |               | messages.0            | messages         |                    |
alternates                  |               |                       | messages         | contents           |
ends with the user          |               | messages              | messages         | contents           |
names tools by a pattern    | function.name | tools.0.custom.name   | 0.toolSpec.name  | 0].name            | tools[0].name
has no two tools of a name  |               | tools.1.custom.name   |                  | 1].name            |
describes tools in words    |               |                       | description      |                    |
has objects as arguments    | parameters    | 0.custom.input_schema | inputSchema.json | 0].parameters      | tools[0].parameters
has no choice at their root |               | 0.custom.input_schema | inputSchema.json |                    |
closes strict tools         | parameters    | 0.custom.input_schema | inputSchema.json |                    | tools[0].parameters
chooses among tools         | tool_choice   | tool_choice           |                  |                    | tool_choice
chooses an offered tool     | tool_choice   | tool_choice           |                  | wed_function_names | tool_choice
has the tools of its calls  |               |                       | toolConfig       |                    |
has a result of each call   | messages      | messages.1.content.0  | 1.content.0      | 1].parts[0]        | input
has a call for each result  | messages      | messages.0.content.0  | 0.content.0      | 0].parts[0]        | input
has one result of a call    | messages      | messages.2.content.1  | 2.content.1      | 2].parts[1]        | input
has results first           |               | messages.1.content.0  | 1.content.0      | 1].parts[0]        |
has results alone           |               |                       |                  | 2].parts[1]        |
has ids by a pattern        | messages      | messages.1.content.0  | 1.content.0      |                    | input
has images                  | messages      | not process image     |                  | 0].parts[0]        | input
has images of their type    |               | messages.0.content.0  |                  | 0].parts[0]        |
has small images            |               | messages.0.content.0  | 0.content.0      |                    |
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

const contents = (...list: [role: string, ...parts: object[]][]) => ({
  contents: list.map(([role, ...parts]) => ({ role, parts })),
});
const functionCall = { functionCall: { name: 'weather', args: {} } };
const answered = (name: string) =>
  contents(
    ['user', { text: 'a' }],
    ['model', functionCall],
    ['user', { functionResponse: { name, response: {} } }],
  );
const declared = (parameters: object) => ({
  tools: [{ functionDeclarations: [{ name: 'weather', parametersJsonSchema: parameters }] }],
});
const parameters = 'tools[0].function_declarations[0].parameters';
const inB = (b: object) => ({ ...object, properties: { b } });

/** A change of a body that breaks a rule of its provider, and the place that it refuses. */
type OwnRule = [change: Record<string, unknown>, place: string];
/** Rules of one provider alone. */
export const ownRules: Record<ProviderId, OwnRule[]> = {
  openai: [
    [{ model: undefined }, 'model'],
    [{ messages: 5 }, 'another shape'],
    [{ parallel_tool_calls: false }, 'parallel_tool_calls'],
    [{ response_format: { type: 'json_object' } }, 'messages'],
  ],
  anthropic: [
    [{ model: undefined }, 'model'],
    [{ messages: [system] }, 'messages.0'],
    [{ messages: [hello, hi, system] }, 'messages.2'],
    [{ messages: [hello, system, hello] }, 'messages.1'],
    [{ top_k: 5 }, '`top_k` is deprecated for this model.'],
  ],
  bedrock: [[{ messages: [user({} as never)] }, 'messages']],
  vertexai: [
    [contents(['model', { text: 'm' }]), 'contents'],
    [answered('weather'), 'contents[1].parts[0]: expected a thought_signature'],
    [answered('b'), 'contents[1].parts[0]: expected a result'],
    [declared(inB({ $ref: '#', title: 'b' })), `${parameters}.properties.b: expected no title`],
    [declared({ ...object, required: ['a'] }), `${parameters}.required`],
    [declared(inB({ anyOf: [{ enum: ['a', ''] }] })), `${parameters}.properties.b.any_of.0.enum`],
    [declared(inB({ type: 'string', enum: [] })), `${parameters}.properties.b.enum`],
    [declared(inB({ type: ['array', 'null'] })), `${parameters}.properties.b.items`],
  ],
};
