import { describe, expect, it } from 'vitest';
import { type ModelParameters, modelParametersSchema } from '../../../shared/models/model-parameters.js';

const all: Required<ModelParameters> = {
  maxOutputTokens: 5,
  temperature: 0.5,
  topP: 0.5,
  topK: 40,
  stop: ['\u0000', '🎉'],
  seed: -7,
  frequencyPenalty: -2,
  presencePenalty: 1.5,
  reasoningEffort: 'low',
  thinking: 'adaptive',
  verbosity: 'high',
  tools: [{ name: 'look', description: 'Looks.', parameters: { type: 'object' }, strict: false }],
  toolChoice: { name: 'look' },
  parallelToolCalls: false,
  format: { type: 'json_schema', name: 'answer', schema: { type: 'object' } },
  cacheKey: 'k',
};

describe('modelParametersSchema', () => {
  it('all parameters, and none -> are taken', () => {
    expect(modelParametersSchema.parse(all)).toEqual(all);
    expect(modelParametersSchema.parse({})).toEqual({});
  });

  it.each<[keyof ModelParameters, values: unknown[]]>([
    ['maxOutputTokens', [0, 1.5, 1e308]],
    ['temperature', [Number.NaN, Number.POSITIVE_INFINITY, -0.1, 2.1, '1', null]],
    ['topP', [1.1]],
    ['topK', [-1, 1.5]],
    ['thinking', ['enabled', 0]],
    ['stop', [[], [''], ['a', 'b', 'c', 'd', 'e'], ['\ud800'], ['a'.repeat(1001)], 'a']],
    ['seed', [2 ** 53, 0.5]],
    ['frequencyPenalty', [2.1]],
    ['presencePenalty', [-2.1]],
    ['reasoningEffort', ['toString', null]],
    ['verbosity', ['loud']],
    ['tools', [[], [{ name: 'a b' }], [{ name: 'a'.repeat(65) }], [{ name: 'a', parameters: [] }]]],
    ['tools', [Array.from({ length: 129 }, (_, n) => ({ name: `a${n}` }))]],
    ['toolChoice', ['any']],
    ['format', [{ type: 'text' }, { type: 'json_schema', name: 'a' }]],
    ['cacheKey', ['', 'k'.repeat(513), 5]],
  ])('%s that is one of %j -> is refused', (name, values) => {
    for (const value of values)
      expect(modelParametersSchema.safeParse({ [name]: value }).success, String(value)).toBe(false);
  });

  it('what it does not know, prototypes among it -> is dropped', () => {
    const parsed = modelParametersSchema.parse(JSON.parse('{"seed":1,"__proto__":{"topP":5},"toString":1}'));
    expect(JSON.stringify(parsed)).toBe('{"seed":1}');
    expect(Object.getPrototypeOf(parsed)).toBe(Object.prototype);
  });
});
