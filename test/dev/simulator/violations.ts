import type { ProviderId } from '../../../shared/contract.js';

const user = { role: 'user', content: 'Hello' };
const assistant = { role: 'assistant', content: 'Hi!' };
const block = (text: unknown, role = 'user') => ({ role, content: [{ text }] });
const part = (text: unknown, role = 'user') => ({ role, parts: [{ text }] });
const inference = (config: object) => ({ inferenceConfig: config });
const generation = (config: object) => ({ generationConfig: config });
const typed = (text: string) => ({ role: 'user', content: [{ type: 'text', text }] });

/** A change of a valid body that breaks a rule, and words of the provider's answer. */
export type Violation = [change: Record<string, unknown>, words: string];

const openai: Violation[] = [
  [{ messages: undefined }, "Missing required parameter: 'messages'."],
  [{ messages: [] }, "Invalid 'messages': empty array."],
  [{ messages: {} }, "Invalid type for 'messages': expected an array of objects, but got an object"],
  [{ messages: ['Hello'] }, "Invalid type for 'messages[0]'"],
  [{ messages: [{ role: 'model', content: 'x' }] }, "Invalid value: 'model'. Supported values are"],
  [{ messages: [{ content: 'x' }] }, "Missing required parameter: 'messages[0].role'."],
  [{ messages: [user, { role: 'user' }] }, "Invalid value for 'content': expected a string, got null."],
  [{ messages: [{ role: 'user', content: 5 }] }, 'one of a string or array of objects, but got an integer'],
  [{ messages: [{ role: 'user', content: [] }] }, "Invalid 'messages[0].content': empty array."],
  [{ messages: [{ role: 'user', content: [{ type: 'txt' }] }] }, "Invalid value: 'txt'."],
  [{ messages: [{ ...user, id: 1 }] }, "Unknown parameter: 'messages[0].id'."],
  [{ max_output_tokens: 5 }, 'Unrecognized request argument supplied: max_output_tokens'],
  [{ foo: 5, bar: 1 }, 'Unrecognized request arguments supplied: foo, bar'],
  [{ max_tokens: 5 }, "Use 'max_completion_tokens' instead."],
  [{ max_completion_tokens: 0 }, 'Expected a value >= 1, but got 0 instead.'],
  [{ max_completion_tokens: 1.5 }, 'expected an integer, but got a decimal'],
  [{ stream_options: { include_usage: true } }, "only allowed when 'stream' is enabled"],
  [{ stream: 'yes' }, "Invalid type for 'stream'"],
  [{ model: undefined }, 'you must provide a model parameter'],
  [{ temperature: '1' }, "'temperature': expected a decimal, but got a s"],
  [{ temperature: 2.5 }, 'Expected a value <= 2, but got 2.5 instead.'],
  [{ presence_penalty: -3 }, "Invalid 'presence_penalty': decimal below minimum value."],
  [{ seed: 0.5 }, "'seed': expected an integer, but got a decimal"],
  [{ reasoning_effort: 'huge' }, "Invalid value: 'huge'. Supported values are: none, mi"],
  [{ stop: ['a', 'b', 'c', 'd', 'e'] }, 'but got an array with length 5 instead.'],
  [{ stop: ['a', ''] }, "Invalid type for 'stop[1]'"],
  [{ stop: 5 }, "'stop': expected one of a string or array of strings"],
];

const anthropic: Violation[] = [
  [{ max_tokens: undefined }, 'max_tokens: Field required'],
  [{ max_tokens: 0 }, 'max_tokens: Input should be greater than or equal to 1'],
  [{ max_tokens: '9' }, 'max_tokens: Input should be a valid integer'],
  [{ messages: undefined }, 'messages: Field required'],
  [{ messages: [] }, 'messages: at least one message is required'],
  [{ messages: [{ role: 'system', content: 'x' }, user] }, 'messages: Unexpected role "system".'],
  [{ messages: [{ role: 'model', content: 'x' }] }, "messages.0.role: Input should be 'user' or 'assistant'"],
  [{ messages: [assistant, user] }, 'messages: first message must use the "user" role'],
  [{ messages: [user, assistant] }, 'This model does not support assistant message prefill.'],
  [{ messages: [user, user] }, 'found multiple "user" roles in a row'],
  [{ messages: [{ role: 'user', content: '' }] }, 'messages.0: all messages must have non-empty content'],
  [{ messages: [{ role: 'user' }] }, 'messages.0.content: Field required'],
  [
    { messages: [{ role: 'user', content: ' \n' }] },
    'messages: text content blocks must contain non-whitespace text',
  ],
  [{ messages: [typed('')] }, 'messages: text content blocks must be non-empty'],
  [{ messages: [{ ...user, name: 'x' }] }, 'messages.0.name: Extra inputs are not permitted'],
  [{ system: ' ' }, 'system: text content blocks must contain non-whitespace text'],
  [{ system: [{ type: 'text', text: '' }] }, 'system: text content blocks must be non-empty'],
  [{ temperature: 0.5 }, '`temperature` is deprecated for this model.'],
  [{ max_completion_tokens: 5 }, 'max_completion_tokens: Extra inputs are not permitted'],
  [{ model: undefined }, 'model: Field required'],
  [{ stop_sequences: 'a' }, 'stop_sequences: Input should be a valid list'],
  [{ stop_sequences: ['a', 5] }, 'stop_sequences.1: Input should be a valid s'],
  [{ stop_sequences: ['\n'] }, 'each stop sequence must contain non-whitespace'],
];

const bedrock: Violation[] = [
  [{ messages: undefined }, 'A conversation must start with a user message.'],
  [{ messages: [block('a', 'assistant'), block('u')] }, 'A conversation must start with a user message.'],
  [{ messages: [block('a'), block('b')] }, 'A conversation must alternate between user and assistant roles.'],
  [{ messages: [block('u'), block('a', 'assistant')] }, 'The conversation must end with a user message.'],
  [
    { messages: [block('s', 'system')] },
    "Value 'system' at 'messages.1.member.role' failed to satisfy constraint: Member must satisfy enum value set: [user, assistant]",
  ],
  [{ messages: [block(' ')] }, 'The text field in the ContentBlock object at messages.0.content.0 is blank.'],
  [
    { messages: [{ role: 'user', content: [] }] },
    'The content field in the Message object at messages.0 is empty.',
  ],
  [{ system: [{ text: '' }] }, 'The text field in the SystemContentBlock object at system.0 is blank.'],
  [{ inferenceConfig: { maxTokens: 0 } }, 'Member must have value greater than or equal to 1'],
  [{ max_tokens: 5 }, 'extraneous key [max_tokens] is not permitted'],
  [{ messages: [{ role: 'user', content: 'Hello' }] }, 'Unexpected type of value at messages.0.content'],
  [inference({ top_p: 1 }), '#/inferenceConfig: extraneous key [top_p] is not permitted'],
  [inference({ temperature: 1.1 }), 'Member must have value less than or equal to 1'],
  [inference({ topP: -0.1 }), 'Member must have value greater than or equal to 0'],
  [inference({ topP: '1' }), 'Unexpected type of value at inferenceConfig.topP'],
  [inference({ stopSequences: 'a' }), 'inferenceConfig.stopSequences'],
  [inference({ stopSequences: [''] }), 'have length greater than or equal to 1'],
];

const vertexai: Violation[] = [
  [{ contents: undefined }, 'at least one contents field is required'],
  [{ contents: [part('x', 'assistant')] }, 'Please use a valid role: user, model.'],
  [{ contents: [{ role: 'user', parts: [] }] }, 'it must include at least one parts field'],
  [{ contents: [{ role: 'user', parts: [{}] }] }, 'it must have a text parameter'],
  [{ contents: [part('')] }, 'it has an empty text parameter'],
  [{ contents: [part('u'), part('m', 'model')] }, 'multiturn requests end with a user role'],
  [{ contents: [part('m', 'model')] }, 'single turn requests end with a user role'],
  [{ contents: [part('a'), part('b')] }, 'alternate between user and model'],
  [{ systemInstruction: { parts: [] } }, 'it must include at least one parts field'],
  [{ generationConfig: { maxOutputTokens: 0 } }, 'maxOutputTokens value of 0'],
  [{ messages: [] }, 'Unknown name "messages": Cannot find field.'],
  [{ generationConfig: { maxTokens: 1 } }, 'Unknown name "maxTokens" at \'generation_config\''],
  [generation({ temperature: 2.1 }), 'it has a temperature value of 2.1 but the supp'],
  [generation({ topP: '1' }), "Invalid value at 'generation_config.top_p'"],
  [generation({ presencePenalty: 2 }), 'range is from -2 (inclusive) to 2 (exclusive)'],
  [generation({ seed: 2 ** 31 }), "Invalid value at 'generation_config.seed'"],
  [generation({ stopSequences: [''] }), "at 'generation_config.stop_sequences[0]'"],
  [generation({ stopSequences: [...'abcdef'] }), 'it has 6 stop sequences but'],
];

/** Every rule that a provider's body can break. */
export const violations: Record<ProviderId, Violation[]> = { openai, anthropic, bedrock, vertexai };
