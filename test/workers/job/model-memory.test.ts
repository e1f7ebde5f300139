import { describe, expect, it } from 'vitest';
import type { ProviderId } from '../../../shared/contract.js';
import { ModelMemory, schemaOf } from '../../../workers/job/model-memory.js';
import type { ModelRequest } from '../../../workers/job/model-request.js';

const requestOf = (parameters: ModelRequest['parameters'], model = 'm'): ModelRequest => ({
  ...{ model, maxOutputTokens: 1, turns: [], parameters },
});
const schema = { type: 'object' };
const format = { type: 'json_schema', name: 'n', schema } as const;

describe('ModelMemory', () => {
  it('knows the last hundred schemas that were used, and forgets the one that was used longest ago', () => {
    const memory = new ModelMemory();
    for (let n = 0; n < 100; n += 1) memory.recordUse(`${n}`);
    memory.recordUse('0');
    memory.recordUse('another');
    expect(['0', '1', '2', 'another'].map((one) => memory.hasUsed(one))).toEqual([true, false, true, true]);
  });
});

describe('schemaOf', () => {
  it.each<[ProviderId, ModelRequest['parameters'], boolean]>([
    ['openai', { format }, true],
    ['anthropic', { format }, true],
    ['bedrock', { tools: [{ name: 'f', strict: true }] }, true],
    ['vertexai', { format }, false],
    ['openai', { tools: [{ name: 'f', parameters: schema }] }, false],
    ['openai', { format: { type: 'json_object' } }, false],
    ['openai', undefined, false],
  ])('of %s and %j: %s', (provider, parameters, isCompiled) => {
    expect(schemaOf(provider, requestOf(parameters)) !== undefined).toBe(isCompiled);
  });

  it('is another for another schema and another model, and the same for other descriptions', () => {
    const digests = [
      requestOf({ format }),
      requestOf({ format: { ...format, schema: { type: 'array' } } }),
      requestOf({ format }, 'other'),
      requestOf({ tools: [{ name: 'f', parameters: schema, strict: true }] }),
    ].map((request) => schemaOf('openai', request));
    expect(new Set(digests).size).toBe(4);
    expect(schemaOf('openai', requestOf({ format: { ...format, description: 'd' }, seed: 1 }))).toBe(
      digests[0],
    );
  });
});
