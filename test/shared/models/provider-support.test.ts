import { describe, expect, it } from 'vitest';
import { type ProviderId, providerIds } from '../../../shared/contracts/contract.js';
import type { Part } from '../../../shared/conversation.js';
import type { ModelParameters } from '../../../shared/models/model-parameters.js';
import {
  findUnsupported,
  ignoredHints,
  parametersFor,
  unsupportedReason,
} from '../../../shared/models/provider-support.js';

/**
 * The parameters that the provider does not get: the one that makes the request fail, or the hints that it is asked
 * without.
 */
const untaken = (id: ProviderId, parameters: ModelParameters) => [
  findUnsupported(id, parameters)?.parameter ?? [],
  ...ignoredHints(id, parameters),
];

// Which provider takes which parameter, image and keyword is held by the tables of docs/tools.md (tools-page).
describe.each(providerIds)('what %s is asked', (id) => {
  it('hints that are ignored -> are left out, and nothing else', () => {
    const asked: ModelParameters = {
      ...{ maxOutputTokens: 5, temperature: 0.5, topP: 0.5, stop: ['\u0000', '🎉'], seed: -7 },
      ...{ frequencyPenalty: -2, presencePenalty: 1.5, reasoningEffort: 'low', verbosity: 'high' },
      ...{ tools: [{ name: 'look' }], parallelToolCalls: false, cacheKey: 'k' },
    };
    const ignored: readonly string[] = ignoredHints(id, asked);
    expect(Object.keys(parametersFor(id, asked))).toEqual(
      Object.keys(asked).filter((name) => !ignored.includes(name)),
    );
  });

  it('what changes nothing -> is left out, without a word', () => {
    const penalties = { frequencyPenalty: 0, presencePenalty: 0 };
    const neutral = { temperature: 1, topP: 1, ...penalties, parallelToolCalls: true };
    expect(untaken(id, neutral).flat()).toEqual([]);
    expect(untaken(id, { seed: undefined } as ModelParameters).flat()).toEqual([]);
  });
});

const map = { type: 'object', additionalProperties: { type: 'string' } };
const bounded = { type: 'object', properties: { a: { type: 'integer', minimum: 1, multipleOf: 2 } } };
const format = (schema: Record<string, unknown>): ModelParameters => ({
  format: { type: 'json_schema', name: 'answer', schema },
});

describe('schemas', () => {
  it.each<[ProviderId[], ModelParameters, path: (string | number)[]]>([
    [['anthropic', 'bedrock'], format(map), ['schema', 'additionalProperties']],
    [
      ['anthropic', 'bedrock'],
      { tools: [{ name: 'a' }, { name: 'b', parameters: map, strict: true }] },
      [1, 'parameters', 'additionalProperties'],
    ],
    [[], { tools: [{ name: 'b', parameters: map }] }, []],
    [
      ['anthropic', 'bedrock', 'vertexai'],
      { tools: [{ name: 'a', parameters: { type: 'string' } }] },
      [0, 'parameters', 'type'],
    ],
    [['vertexai'], { tools: [{ name: 'a' }, { name: '1' }] }, [1, 'name']],
  ])('those that %j do not take -> fail the request', (ids, parameters, path) => {
    const found = providerIds.flatMap((id) => {
      const unsupported = findUnsupported(id, parameters);
      return unsupported ? [{ id, ...unsupported }] : [];
    });
    const [parameter] = Object.keys(parameters);
    expect(found).toEqual(ids.map((id) => ({ id, parameter, path, detail: expect.any(String) })));
  });

  it('those with keywords that a provider does not take -> these are named, and they stay as they are', () => {
    const tools = [true, false].map((strict) => ({ name: `a${strict}`, parameters: bounded, strict }));
    const parameters = { tools, ...format(bounded), verbosity: 'low' } as const;
    const words = ['verbosity', 'tools.minimum', 'tools.multipleOf', 'format.minimum', 'format.multipleOf'];
    expect(providerIds.map((id) => [id, ignoredHints(id, parameters)])).toEqual([
      ['openai', []],
      ['anthropic', words],
      ['bedrock', words],
      ['vertexai', ['verbosity', 'tools.strict', 'tools.multipleOf', 'format.multipleOf']],
    ]);
    const { verbosity: _, ...rest } = parameters;
    for (const id of ['anthropic', 'bedrock', 'vertexai'] as const)
      expect(parametersFor(id, parameters)).toEqual(rest);
  });
});

const call = (name: string): Part => ({ type: 'tool_call', id: 'c', name, arguments: '{}' });

it.each<[ProviderId[], Part]>([
  [[], call('_look')],
  [['vertexai'], call('-look')],
])('%j -> cannot be told %j', (ids, part) => {
  expect(providerIds.filter((id) => unsupportedReason(id, part) !== undefined)).toEqual(ids);
});

it('a schema that is asked about often -> is read once for each provider', () => {
  let reads = 0;
  const schema = {
    type: 'object',
    get title() {
      reads += 1;
      return 'Answer';
    },
  };
  const parameters: ModelParameters = { format: { type: 'json_schema', name: 'answer', schema } };
  const ask = () => [findUnsupported('vertexai', parameters), ignoredHints('vertexai', parameters)];
  ask();
  const first = reads;
  ask();
  expect([first > 0, reads]).toEqual([true, first]);
  findUnsupported('anthropic', parameters);
  expect(reads).toBeGreaterThan(first);
});
