import { describe, expect, it } from 'vitest';
import { type ProviderId, providerIds } from '../../../shared/contract.js';
import {
  findUnsupportedParameter,
  ignoredHints,
  type ModelParameters,
  modelParametersSchema,
  type ParameterName,
  parametersFor,
} from '../../../shared/protocol/model-parameters.js';

const all: Required<ModelParameters> = {
  maxOutputTokens: 5,
  temperature: 0.5,
  topP: 0.5,
  stop: ['\u0000', '🎉'],
  seed: -7,
  frequencyPenalty: -2,
  presencePenalty: 1.5,
  reasoningEffort: 'low',
};

describe('modelParametersSchema', () => {
  it('takes all parameters, and none', () => {
    expect(modelParametersSchema.parse(all)).toEqual(all);
    expect(modelParametersSchema.parse({})).toEqual({});
  });

  it.each([
    { maxOutputTokens: 0 },
    { maxOutputTokens: 1.5 },
    { maxOutputTokens: 1e308 },
    { temperature: Number.NaN },
    { temperature: Number.POSITIVE_INFINITY },
    { temperature: -0.1 },
    { temperature: 2.1 },
    { temperature: '1' },
    { temperature: null },
    { topP: 1.1 },
    { stop: [] },
    { stop: [''] },
    { stop: ['a', 'b', 'c', 'd', 'e'] },
    { stop: ['\ud800'] },
    { stop: ['a'.repeat(1001)] },
    { stop: 'a' },
    { seed: 2 ** 53 },
    { seed: 0.5 },
    { frequencyPenalty: 2.1 },
    { presencePenalty: -2.1 },
    { reasoningEffort: 'toString' },
    { reasoningEffort: null },
  ])('refuses %o', (parameters) => {
    expect(modelParametersSchema.safeParse(parameters).success).toBe(false);
  });

  it('drops what it does not know, prototypes among it', () => {
    const parsed = modelParametersSchema.parse(JSON.parse('{"seed":1,"__proto__":{"topP":5},"toString":1}'));
    expect(JSON.stringify(parsed)).toBe('{"seed":1}');
    expect(Object.getPrototypeOf(parsed)).toBe(Object.prototype);
  });
});

const ofAll = ['maxOutputTokens', 'stop'] as const;
const ofBedrock = [...ofAll, 'temperature', 'topP'] as const;
const ofVertexAi = [...ofBedrock, 'seed', 'frequencyPenalty', 'presencePenalty'] as const;

/** The parameters of each provider's models; some only within limits. */
const supportedParameters: Readonly<Record<ProviderId, ReadonlySet<ParameterName>>> = {
  openai: new Set([...ofVertexAi, 'reasoningEffort']),
  anthropic: new Set(ofAll),
  bedrock: new Set(ofBedrock),
  vertexai: new Set(ofVertexAi),
};

/**
 * The parameters that the provider does not get: the one that makes the request fail, or the hints that it is asked
 * without.
 */
const untaken = (id: ProviderId, parameters: ModelParameters) => [
  findUnsupportedParameter(id, parameters) ?? [],
  ...ignoredHints(id, parameters),
];

describe.each(providerIds)('the table of %s', (id) => {
  const names = Object.keys(all) as (keyof ModelParameters)[];
  // The only one of these values that not all who know the parameter take.
  const values = { ...all, stop: ['🎉'] };

  it('has an answer for each parameter', () => {
    for (const name of names) {
      const found = untaken(id, { [name]: values[name] }).flat();
      expect(found).toEqual(supportedParameters[id].has(name) ? [] : [name]);
    }
  });

  it('lets a request fail only for what is no hint (finding C1)', () => {
    const hints = ['temperature', 'topP', 'seed', 'frequencyPenalty', 'presencePenalty'] as const;
    for (const name of hints)
      expect(findUnsupportedParameter(id, { [name]: values[name] }), name).toBeUndefined();
    const ignored = hints.filter((name) => !supportedParameters[id].has(name));
    expect(ignoredHints(id, values)).toEqual(ignored);
    const rest = names.filter((name) => !(ignored as readonly string[]).includes(name));
    expect(Object.keys(parametersFor(id, values))).toEqual(rest);
  });

  it('leaves out what changes nothing, without a word', () => {
    const neutral = { temperature: 1, topP: 1, frequencyPenalty: 0, presencePenalty: 0 };
    expect(untaken(id, neutral).flat()).toEqual([]);
    expect(untaken(id, { seed: undefined } as ModelParameters).flat()).toEqual([]);
  });
});

it.each<[ProviderId, ModelParameters, ModelParameters]>([
  ['anthropic', { stop: ['a\n'] }, { stop: ['a', '\n'] }],
  ['bedrock', { temperature: 0.9 }, { temperature: 1.1 }],
  ['vertexai', { seed: 2 ** 31 - 1 }, { seed: 2 ** 31 }],
  ['vertexai', { presencePenalty: 1.9 }, { presencePenalty: 2 }],
  ['vertexai', { frequencyPenalty: -2 }, { frequencyPenalty: 2 }],
])('%s takes %o, but not %o', (id, taken, refused) => {
  expect(untaken(id, taken).flat()).toEqual([]);
  expect(untaken(id, { maxOutputTokens: 1, ...refused }).flat()).toEqual(Object.keys(refused));
  expect(untaken('openai', refused).flat()).toEqual([]);
});
