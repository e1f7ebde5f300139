import type { ProviderId } from '../../../shared/contract.js';

const user = { role: 'user', content: 'Hello' };
const assistant = { role: 'assistant', content: 'Hi!' };
const block = (text: unknown, role = 'user') => ({ role, content: [{ text }] });
const part = (text: unknown, role = 'user') => ({ role, parts: [{ text }] });
const typed = (text: string) => ({ role: 'user', content: [{ type: 'text', text }] });

/** A rule, the change of a valid body that breaks it, and words of the provider's answer. */
export type Violation = [rule: string, change: Record<string, unknown>, words: string];

const openAi: Violation[] = [
  ['no messages', { messages: undefined }, "Missing required parameter: 'messages'."],
  ['an empty conversation', { messages: [] }, "Invalid 'messages': empty array."],
  [
    'messages that are no list',
    { messages: {} },
    "Invalid type for 'messages': expected an array of objects, but got an object",
  ],
  ['a message that is no object', { messages: ['Hello'] }, "Invalid type for 'messages[0]'"],
  [
    'an unknown role',
    { messages: [{ role: 'model', content: 'x' }] },
    "Invalid value: 'model'. Supported values are",
  ],
  ['no role', { messages: [{ content: 'x' }] }, "Missing required parameter: 'messages[0].role'."],
  [
    'no content',
    { messages: [user, { role: 'user' }] },
    "Invalid value for 'content': expected a string, got null.",
  ],
  [
    'content of another type',
    { messages: [{ role: 'user', content: 5 }] },
    'one of a string or array of objects, but got an integer',
  ],
  [
    'an empty list of parts',
    { messages: [{ role: 'user', content: [] }] },
    "Invalid 'messages[0].content': empty array.",
  ],
  [
    'a part of an unknown type',
    { messages: [{ role: 'user', content: [{ type: 'txt' }] }] },
    'Invalid content part',
  ],
  [
    'an unknown field of a message',
    { messages: [{ ...user, id: 1 }] },
    "Unknown parameter: 'messages[0].id'.",
  ],
  [
    'an unknown parameter',
    { max_output_tokens: 5 },
    'Unrecognized request argument supplied: max_output_tokens',
  ],
  ['unknown parameters', { foo: 5, bar: 1 }, 'Unrecognized request arguments supplied: foo, bar'],
  ['the deprecated limit', { max_tokens: 5 }, "Use 'max_completion_tokens' instead."],
  ['a limit of zero', { max_completion_tokens: 0 }, 'Expected a value >= 1, but got 0 instead.'],
  ['a limit that is not whole', { max_completion_tokens: 1.5 }, 'expected an integer, but got a decimal'],
  [
    'stream options without a stream',
    { stream_options: { include_usage: true } },
    "only allowed when 'stream' is enabled",
  ],
  ['a streaming flag that is no boolean', { stream: 'yes' }, "Invalid type for 'stream'"],
  ['no model', { model: undefined }, 'you must provide a model parameter'],
];

const anthropic: Violation[] = [
  ['no token limit', { max_tokens: undefined }, 'max_tokens: Field required'],
  ['a limit of zero', { max_tokens: 0 }, 'max_tokens: Input should be greater than or equal to 1'],
  ['a limit that is not whole', { max_tokens: '9' }, 'max_tokens: Input should be a valid integer'],
  ['no messages', { messages: undefined }, 'messages: Field required'],
  ['an empty conversation', { messages: [] }, 'messages: at least one message is required'],
  [
    'a system role',
    { messages: [{ role: 'system', content: 'x' }, user] },
    'messages: Unexpected role "system".',
  ],
  [
    'an unknown role',
    { messages: [{ role: 'model', content: 'x' }] },
    "messages.0.role: Input should be 'user' or 'assistant'",
  ],
  [
    'a start on assistant',
    { messages: [assistant, user] },
    'messages: first message must use the "user" role',
  ],
  [
    'an end on assistant',
    { messages: [user, assistant] },
    'This model does not support assistant message prefill.',
  ],
  ['a run of one role', { messages: [user, user] }, 'found multiple "user" roles in a row'],
  [
    'an empty text',
    { messages: [{ role: 'user', content: '' }] },
    'messages.0: all messages must have non-empty content',
  ],
  ['no content', { messages: [{ role: 'user' }] }, 'messages.0.content: Field required'],
  [
    'a blank text',
    { messages: [{ role: 'user', content: ' \n' }] },
    'messages: text content blocks must contain non-whitespace text',
  ],
  ['an empty block', { messages: [typed('')] }, 'messages: text content blocks must be non-empty'],
  [
    'a blank block',
    { messages: [typed(' ')] },
    'messages: text content blocks must contain non-whitespace text',
  ],
  [
    'an unknown field of a message',
    { messages: [{ ...user, name: 'x' }] },
    'messages.0.name: Extra inputs are not permitted',
  ],
  ['a blank system text', { system: ' ' }, 'system: text content blocks must contain non-whitespace text'],
  [
    'an empty system block',
    { system: [{ type: 'text', text: '' }] },
    'system: text content blocks must be non-empty',
  ],
  ['a temperature', { temperature: 0.5 }, '`temperature` is deprecated for this model.'],
  ['top_p', { top_p: 0.5 }, '`top_p` is deprecated for this model.'],
  [
    'an unknown parameter',
    { max_completion_tokens: 5 },
    'max_completion_tokens: Extra inputs are not permitted',
  ],
  ['no model', { model: undefined }, 'model: Field required'],
];

const bedrock: Violation[] = [
  ['no messages', { messages: undefined }, 'A conversation must start with a user message.'],
  ['an empty conversation', { messages: [] }, 'A conversation must start with a user message.'],
  [
    'a start on assistant',
    { messages: [block('a', 'assistant'), block('u')] },
    'A conversation must start with a user message.',
  ],
  [
    'a run of one role',
    { messages: [block('a'), block('b')] },
    'A conversation must alternate between user and assistant roles.',
  ],
  [
    'an end on assistant',
    { messages: [block('u'), block('a', 'assistant')] },
    'The conversation must end with a user message.',
  ],
  [
    'a system role',
    { messages: [block('s', 'system')] },
    "Value 'system' at 'messages.1.member.role' failed to satisfy constraint: Member must satisfy enum value set: [user, assistant]",
  ],
  [
    'a blank text',
    { messages: [block(' ')] },
    'The text field in the ContentBlock object at messages.0.content.0 is blank.',
  ],
  [
    'no content blocks',
    { messages: [{ role: 'user', content: [] }] },
    'The content field in the Message object at messages.0 is empty.',
  ],
  [
    'a blank system text',
    { system: [{ text: '' }] },
    'The text field in the SystemContentBlock object at system.0 is blank.',
  ],
  [
    'a limit of zero',
    { inferenceConfig: { maxTokens: 0 } },
    'Member must have value greater than or equal to 1',
  ],
  ['an unknown field', { max_tokens: 5 }, 'extraneous key [max_tokens] is not permitted'],
  [
    'content of another type',
    { messages: [{ role: 'user', content: 'Hello' }] },
    'Unexpected type of value at messages.0.content',
  ],
];

const vertexai: Violation[] = [
  ['no contents', { contents: undefined }, 'at least one contents field is required'],
  ['empty contents', { contents: [] }, 'at least one contents field is required'],
  ['an assistant role', { contents: [part('x', 'assistant')] }, 'Please use a valid role: user, model.'],
  ['no role', { contents: [{ parts: [{ text: 'x' }] }] }, 'Please use a valid role: user, model.'],
  ['no parts', { contents: [{ role: 'user', parts: [] }] }, 'it must include at least one parts field'],
  ['an empty part', { contents: [{ role: 'user', parts: [{}] }] }, 'it must have a text parameter'],
  ['an empty text', { contents: [part('')] }, 'it has an empty text parameter'],
  [
    'an end on model',
    { contents: [part('u'), part('m', 'model')] },
    'multiturn requests end with a user role',
  ],
  ['a single model turn', { contents: [part('m', 'model')] }, 'single turn requests end with a user role'],
  ['a run of one role', { contents: [part('a'), part('b')] }, 'alternate between user and model'],
  [
    'system parts that are empty',
    { systemInstruction: { parts: [] } },
    'it must include at least one parts field',
  ],
  ['a limit of zero', { generationConfig: { maxOutputTokens: 0 } }, 'maxOutputTokens value of 0'],
  ['an unknown field', { messages: [] }, 'Unknown name "messages": Cannot find field.'],
  [
    'an unknown setting',
    { generationConfig: { maxTokens: 1 } },
    'Unknown name "maxTokens" at \'generation_config\'',
  ],
];

/** Every rule that a provider's body can break. */
export const violations: Record<ProviderId, Violation[]> = { openai: openAi, anthropic, bedrock, vertexai };
