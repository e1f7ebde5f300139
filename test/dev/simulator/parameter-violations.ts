import type { ProviderId } from '../../../shared/contract.js';
import type { Violation } from './violations.js';

const openai: Violation[] = [
  ['a temperature that is no number', { temperature: '1' }, "'temperature': expected a decimal, but got a s"],
  ['a temperature above 2', { temperature: 2.5 }, 'Expected a value <= 2, but got 2.5 instead.'],
  ['a top_p below 0', { top_p: -1 }, 'Expected a value >= 0, but got -1 instead.'],
  [
    'a penalty above 2',
    { frequency_penalty: 3 },
    "Invalid 'frequency_penalty': decimal above maximum value.",
  ],
  [
    'a penalty below -2',
    { presence_penalty: -3 },
    "Invalid 'presence_penalty': decimal below minimum value.",
  ],
  ['a seed that is not whole', { seed: 0.5 }, "'seed': expected an integer, but got a decimal"],
  [
    'an unknown effort',
    { reasoning_effort: 'huge' },
    "Invalid value: 'huge'. Supported values are: none, mi",
  ],
  ['five texts to stop at', { stop: ['a', 'b', 'c', 'd', 'e'] }, 'but got an array with length 5 instead.'],
  ['an empty text to stop at', { stop: ['a', ''] }, "Invalid type for 'stop[1]'"],
  ['a text to stop at that is none', { stop: 5 }, "'stop': expected one of a string or array of strings"],
];

const anthropic: Violation[] = [
  [
    'stop sequences that are no list',
    { stop_sequences: 'a' },
    'stop_sequences: Input should be a valid list',
  ],
  [
    'a stop sequence that is no text',
    { stop_sequences: ['a', 5] },
    'stop_sequences.1: Input should be a valid s',
  ],
  ['a blank stop sequence', { stop_sequences: ['\n'] }, 'each stop sequence must contain non-whitespace'],
  ['a stop sequence under another name', { stop: ['a'] }, 'stop: Extra inputs are not permitted'],
];

const inference = (config: object) => ({ inferenceConfig: config });
const bedrock: Violation[] = [
  [
    'an unknown setting',
    inference({ top_p: 1 }),
    '#/inferenceConfig: extraneous key [top_p] is not permitted',
  ],
  [
    'a temperature above 1',
    inference({ temperature: 1.1 }),
    'Member must have value less than or equal to 1',
  ],
  ['a topP below 0', inference({ topP: -0.1 }), 'Member must have value greater than or equal to 0'],
  ['a topP that is no number', inference({ topP: '1' }), 'Unexpected type of value at inferenceConfig.topP'],
  ['stop sequences that are no list', inference({ stopSequences: 'a' }), 'inferenceConfig.stopSequences'],
  ['an empty stop sequence', inference({ stopSequences: [''] }), 'have length greater than or equal to 1'],
];

const generation = (config: object) => ({ generationConfig: config });
const vertexai: Violation[] = [
  [
    'a temperature above 2',
    generation({ temperature: 2.1 }),
    'it has a temperature value of 2.1 but the supp',
  ],
  ['a topP that is no number', generation({ topP: '1' }), "Invalid value at 'generation_config.topP'"],
  ['a penalty of 2', generation({ presencePenalty: 2 }), 'range is from -2 (inclusive) to 2 (exclusive)'],
  ['a seed beyond an int32', generation({ seed: 2 ** 31 }), "Invalid value at 'generation_config.seed'"],
  ['an empty stop sequence', generation({ stopSequences: [''] }), "at 'generation_config.stop_sequences'"],
  ['six stop sequences', generation({ stopSequences: [...'abcdef'] }), 'it has 6 stop sequences but'],
];

/** Every rule that what is asked of a provider's model can break. */
export const parameterViolations: Record<ProviderId, Violation[]> = { openai, anthropic, bedrock, vertexai };
